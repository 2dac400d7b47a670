"""A fused plan has the values of its plan, gradients that are derivatives, and a JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest
from material import draw
from shipped_specs import PLANNED
from spec_writer import random_mixer
from unusual_specs import COMPILED

import dsfc
from dsfc.api.pipeline import Compilation
from dsfc.diagnostics.report import DiagnosticError
from dsfc.expr.build import add, mul
from dsfc.expr.evaluate import NamedArray
from dsfc.expr.evaluate import evaluate as value_of
from dsfc.expr.json import decode, encode
from dsfc.expr.tree import Axis, Expr, Field, Now, Ref, Time
from dsfc.fused.evaluate import evaluate
from dsfc.fused.fuse import fuse
from dsfc.fused.ir import (
    DECAY_BAR,
    FEATURE_BAR,
    OUT_BAR,
    VALUE_BAR,
    FusedPlan,
    barred,
    rate_bar,
)
from dsfc.fused.render import render
from dsfc.plan.evaluate import evaluate as evaluate_plan
from dsfc.plan.scan_ir import Form

LENGTH = 4


def agrees(spec: Compilation) -> FusedPlan:
    """Checks that a fused plan and its plan have the same output and states on random numbers."""
    fused, at = spec.fused(), draw(spec, LENGTH)
    for initial in ({}, at.initial):
        want = evaluate_plan(spec.plan, at.inputs, at.tensors, at.sizes, initial)
        got = evaluate(fused, at.inputs, at.tensors, at.sizes, initial)
        pairs = [(got.arrays[spec.plan.output], want.arrays[spec.plan.output])]
        pairs += [(got.finals[s.name], want.finals[s.name]) for s in spec.plan.states]
        for x, y in pairs:
            scale = max(1.0, np.abs(y).max(initial=0, where=np.isfinite(y)))
            np.testing.assert_allclose(x, y, rtol=0, atol=1e-11 * scale)
    return fused


@pytest.mark.share(4)
@pytest.mark.parametrize("name", PLANNED)
def test_shipped_plans_keep_their_values(name: str, shipped: Callable[[str], Compilation]) -> None:
    agrees(shipped(name))


@pytest.mark.share(16)
@pytest.mark.parametrize("name", COMPILED)
def test_unusual_plans_keep_their_values(
    name: str, load: Callable[[str, str], Compilation]
) -> None:
    agrees(load(name, COMPILED[name]))


def test_a_state_may_have_the_name_of_the_output(
    load: Callable[[str, str], Compilation],
) -> None:
    fused = agrees(load("output_is_a_state", COMPILED["output_is_a_state"]))
    assert len(fused.prologues) == 1


def test_a_complex_state_that_runs_backwards_is_read_in_part(
    load: Callable[[str, str], Compilation],
) -> None:
    name = "selective_complex_backward"
    assert len(agrees(load(name, COMPILED[name])).prologues) == 2


@pytest.mark.parametrize("rate", ["u + b", "(u + b)^2", "u / (u + b)", "exp(u)"])
def test_a_rate_may_be_any_arithmetic(rate: str, load: Callable[[str, str], Compilation]) -> None:
    body = f"""
      dims d, n = 2
      input u : d; q, k : n
      param a : d × n; b : d
      state S : d × n
      rate = {rate}
      S = exp(-rate * a) * S[i-1] + (rate * u) ⊗ k
      y = S · q
    """
    (prologue,) = agrees(load("rates", body)).prologues
    assert [leaf for leaf, _ in prologue.rates] == ["rate"]


@pytest.mark.share(10)
@pytest.mark.parametrize("seed", range(60))
def test_random_plans_keep_their_values(seed: int, tmp_path: Path) -> None:
    path = tmp_path / f"random_{seed}.dsf"
    path.write_text(random_mixer(seed), encoding="utf-8")
    spec = dsfc.load(path)
    try:
        plan = spec.plan
    except DiagnosticError:
        pytest.skip("it has no plan")
    with np.errstate(all="ignore"):
        agrees(spec)
    assert fuse(plan, None) == FusedPlan(plan, plan)


EACH = ("normalized_attn", "linear_attn", "mlstm", "s6", "rg_lru", "lru", "hgrn", "gateloop")
"""Specs that have every kind of prologue and epilogue among them."""


class Numbers:
    """Numbers of leaves, and of gradients of what is computed of them."""

    def __init__(self, sizes: Mapping[str, int], seed: int) -> None:
        self._sizes = sizes
        self._generator = np.random.default_rng(seed)
        self.values: dict[str, NamedArray] = {}

    def size(self, axis: Axis) -> int:
        return self._sizes[axis.name]

    def ref(self, ref: Ref) -> NamedArray:
        axes = tuple(sorted(ref.over))
        if ref.name not in self.values:
            drawn = 0.5 + self._generator.random([self.size(a) for a in axes])
            self.values[ref.name] = NamedArray(axes, drawn)
        return self.values[ref.name]

    def sum_of(self, e: Expr, over: frozenset[Axis]) -> float:
        """The sum of all entries of an expression."""
        return float(value_of(e, self).expand(tuple(sorted(over)), self.size).data.sum())

    def slope(self, e: Expr, over: frozenset[Axis], leaf: str) -> float:
        """How that sum changes with all entries of a leaf, by a central difference."""
        held, ends = self.values[leaf], []
        for step in (1e-6, -1e-6):
            self.values[leaf] = NamedArray(held.axes, held.data + step)
            ends.append(self.sum_of(e, over))
        self.values[leaf] = held
        return (ends[0] - ends[1]) / 2e-6


def computed(fused: FusedPlan) -> Iterator[tuple[list[tuple[Expr, str]], tuple, tuple]]:
    """What kernels compute with names of its gradients, its leaves, and their gradients."""
    for p in fused.prologues:
        pairs = barred(p.value, VALUE_BAR)
        if fused.scans[p.scan].form is Form.SELECTIVE:
            pairs += [(e, rate_bar(n)) for n, e in p.rates] + [(p.added, OUT_BAR)]
        else:
            pairs += barred(p.log_decay, DECAY_BAR)
        yield pairs, p.leaves, p.gradients
    for m in fused.matrices:
        for e in m.computed:
            yield [(e.value, FEATURE_BAR)], e.leaves, e.gradients


@pytest.mark.parametrize("name", EACH)
def test_gradients_of_leaves_are_derivatives(
    name: str, shipped: Callable[[str], Compilation]
) -> None:
    fused = shipped(name).fused()
    sizes = {d.axis.name: 2 for d in fused.plan.axes}
    slopes = 0
    for values, leaves, gradients in computed(fused):
        over = frozenset[Axis]().union(*(e.axes for e, _ in values))
        bars = (Ref(bar, over, Field.REAL, Time.TOKEN, Now(0)) for _, bar in values)
        loss = add(*(mul(bar, e) for bar, (e, _) in zip(bars, values, strict=True)))
        at = Numbers(sizes, slopes)
        at.sum_of(loss, over)
        # Sine and cosine of a constant phase have no gradient: that of log λ holds theirs.
        pairs = [p for p in zip(leaves, gradients, strict=True) if p[0] in at.values]
        for leaf, gradient in pairs:
            want = at.slope(loss, over, leaf)
            assert at.sum_of(gradient, over) == pytest.approx(want, rel=1e-6, abs=1e-7), leaf
        slopes += len(pairs)
    assert slopes


@pytest.mark.share(5)
@pytest.mark.parametrize("name", PLANNED)
def test_json_gives_the_fused_plan_back(name: str, shipped: Callable[[str], Compilation]) -> None:
    fused = shipped(name).fused()
    again = decode(json.loads(json.dumps(encode(fused))), FusedPlan)
    assert again == fused
    assert render(again) == render(fused)


def test_what_is_no_fused_plan_is_refused(shipped: Callable[[str], Compilation]) -> None:
    with pytest.raises(ValueError):
        decode({**encode(shipped("s6").fused()), "value": {}}, FusedPlan)


def test_a_function_that_a_target_lacks_is_computed_in_front(
    shipped: Callable[[str], Compilation],
) -> None:
    fused = fuse(shipped("s6").plan, lambda p: p.name != "softplus")
    before, inside = render(fused).split("scan S computes")
    assert "softplus" in before and "softplus" not in inside
