"""The recurrence that kernels are proved to compute is the scan of the plan, and exact."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from proved_kernels import scan_of

import dsfc
from dsfc.expr.evaluate import NamedArray
from dsfc.expr.tree import Axis
from dsfc.kernel_ir.numbers import DOUBLES
from dsfc.kernel_proofs.exact import ExactNumbers, Undecided, polynomial_of, symbols
from dsfc.kernel_proofs.recurrence import Recurrence
from dsfc.plan.evaluate import Runner
from dsfc.plan.scan_ir import Scan

LENGTH, SIZES = 4, {"h": 2, "n": 3, "p": 2}
NAMES = {"h": "H", "n": "N", "p": "P"}

Array = NDArray[Any]


def buffers_of(scan: Scan) -> dict[str, str]:
    """Buffer of the plan → argument of the operator."""
    (column,) = scan.columns
    sides = {} if scan.low_rank is None else {scan.low_rank.left: "a", scan.low_rank.right: "b"}
    strength = {} if scan.delta is None else {scan.delta.strength: "r"}
    decay = {} if scan.decay is None else {scan.decay.leaves[0]: "g"}
    roles = {scan.read: "q", scan.key: "k", column.value: "v"}
    return {b: n for b, n in (roles | sides | strength | decay).items() if b is not None}


def operator_of(scan: Scan) -> tuple[Recurrence, Mapping[str, tuple[Axis, ...]]]:
    """The recurrence of a scan over heads, keys and channels, and the axes of its arguments."""
    heads, keys, channels = scan.heads, scan.keys, scan.channels
    by_keys = scan.decay is not None and bool(scan.decay.expr.axes & set(keys))
    axes = {n: (*heads, *keys) for n in ("q", "k", "a", "b")}
    axes |= {"v": (*heads, *channels), "r": heads, "g": (*heads, *keys) if by_keys else heads}
    axes = {n: a for n, a in axes.items() if n in buffers_of(scan).values()}
    labels = {n: ("B", "L", *(NAMES[x.name] for x in a)) for n, a in axes.items()}
    labels |= {"S": ("B", "H", "N", "P"), "o": ("B", "L", "H", "P")}
    leaves = {n: a for n, a in buffers_of(scan).items() if a == "g"}
    return Recurrence(scan, labels, "B", "L", leaves, tuple(sorted({*axes, "S"}))), axes


@pytest.mark.parametrize("mixer", ["retnet", "gla", "deltanet", "gated_deltanet", "kda", "rwkv7"])
def test_the_recurrence_is_the_scan_of_the_plan(mixer: str) -> None:
    plan, scan = dsfc.load(mixer).plan, scan_of(mixer)
    draw = np.random.default_rng(3)
    given = {
        b: draw.normal(size=(LENGTH, *(SIZES[a.name] for a in plan.array(b).axes))) / 2
        for b in buffers_of(scan)
    }
    (column,) = scan.columns
    initial, last = draw.normal(size=(2, 3, 2)), dict[str, Array]()
    # A constant has no tokens: each of them reads the first here.
    fixed = {b for b in given if plan.array(b).role.value == "constant"}
    runner = Runner(plan, {b: x[0] if b in fixed else x for b, x in given.items()}, {}, SIZES)
    runner.length = LENGTH
    runner.scan(scan, {column.state: initial}, last)

    recurrence, axes = operator_of(scan)
    arguments = {"S": initial[None]}
    for buffer, name in buffers_of(scan).items():
        rows = [
            NamedArray(plan.array(buffer).axes, given[buffer][0 if buffer in fixed else i])
            .expand(axes[name], lambda a: SIZES[a.name])
            .data
            for i in range(LENGTH)
        ]
        arguments[name] = np.stack(rows)[None]
    got = recurrence.run(arguments, LENGTH, DOUBLES)
    assert np.allclose(got["o"][0], runner.arrays[column.output], 1e-12, 1e-12)
    assert np.allclose(got["S_last"][0], last[column.state], 1e-12, 1e-12)


def test_exact_entries_are_summed_over_keys() -> None:
    recurrence, _ = operator_of(scan_of("retnet"))
    one = {"B": 1, "L": 1, "H": 1, "N": 2, "P": 1}
    given = {n: symbols(n, tuple(one[x] for x in recurrence.labels[n])) for n in recurrence.inputs}
    got = recurrence.run(given, 1, ExactNumbers())
    assert len(polynomial_of(got["o"][0, 0, 0, 0]).terms) == 4
    assert [len(polynomial_of(e).terms) for e in got["S_last"].ravel()] == [2, 2]


def test_no_token_leaves_the_state_as_it_is() -> None:
    recurrence, _ = operator_of(scan_of("gla"))
    given = {n: symbols(n, tuple(0 if x == "L" else 1 for x in recurrence.labels[n]))
             for n in recurrence.inputs}  # fmt: skip
    assert recurrence.run(given, 0, ExactNumbers())["S_last"] == given["S"]


def test_an_argument_has_no_dimension_that_the_state_lacks() -> None:
    recurrence, _ = operator_of(scan_of("gla"))
    labels = {**recurrence.labels, "q": ("B", "L", "H", "M")}
    wider = Recurrence(recurrence.scan, labels, "B", "L", recurrence.leaves, recurrence.inputs)
    given = {n: symbols(n, (1,) * len(labels[n])) for n in recurrence.inputs}
    with pytest.raises(Undecided, match="dimensions that the state lacks"):
        wider.run(given, 1, ExactNumbers())
