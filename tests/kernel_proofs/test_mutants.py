"""No changed kernel is proved that computes something else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import islice

import numpy as np
import pytest
from changed_kernels import mutants
from proved_kernels import by_tokens, gradient_by_tokens, gradient_in_chunks, in_chunks

from dsfc.kernel_ir.interpret import KernelError, interpret, value_of
from dsfc.kernel_ir.ir import Access, Kernel
from dsfc.kernel_proofs.prove import Status, prove
from dsfc.plan.scan_ir import Scan

SIZES = {"B": 2, "H": 2, "N": 3, "P": 3, "PT": 2, "CHANNELS": 3, "BLOCK": 2}
"""Of kernels that are proved for all sizes."""

SMALL = {"B": 1, "H": 1, "N": 2, "P": 2, "PT": 2, "CHANNELS": 2, "BLOCK": 2}
"""Of gradients."""


def forwards(chunk: int) -> list[dict[str, int]]:
    """Sizes at which kernels are run, with and without a ragged end."""
    return [{**SIZES, "L": length} for length in (1, 2 * chunk, 2 * chunk + 3)]


def backwards(chunk: int) -> list[dict[str, int]]:
    """The sizes that are said of a gradient, in one span and in several."""
    lengths = (1, 2, 3) if chunk == 1 else (1, chunk + 1)
    counts = [(n, -(-n // chunk)) for n in lengths]
    spans = [(n, count, span) for n, count in counts for span in {1, count}]
    return [{**SMALL, "L": n, "SPAN": s, "SPANS": count // s} for n, count, s in spans]


def is_the_same(kernel: Kernel, other: Kernel, at: Iterable[dict[str, int]]) -> bool:
    """Whether two kernels write the same numbers."""
    draw = np.random.default_rng(7)
    for sizes in at:
        given = {
            a.name: draw.normal(size=[value_of(s, sizes) for s in a.shape])
            for a in kernel.arguments
            if a.access is Access.READ
        }
        given = {n: -np.abs(x) / 4 if n == "g" else x / 2 for n, x in given.items()}
        want = interpret(kernel, given, sizes)
        try:
            got = interpret(other, given, sizes)
        except KernelError:
            return False
        if not all(np.allclose(got[n], want[n], 1e-9, 1e-9) for n in want):
            return False
    return True


def campaign(
    kernel: Kernel, scan: Scan, at: Iterable[dict[str, int]], step: int = 1
) -> Counter[Status]:
    """What is said of the mutants that compute something else: never that they are proved."""
    proved = prove(kernel, scan).status
    assert proved in (Status.PROVED, Status.AT_LENGTHS)
    said: Counter[Status] = Counter()
    for what, mutant in islice(mutants(kernel), 0, None, step):
        status = prove(mutant, scan).status
        same = is_the_same(kernel, mutant, at)
        assert same or status is not proved, what
        assert not same or status is not Status.REFUTED, what
        said[status] += not same
    return said


def test_no_wrong_kernel_of_a_scan_without_keys_is_proved() -> None:
    said = campaign(*by_tokens("rg_lru"), forwards(1))
    assert said[Status.REFUTED] == said.total() == 41


@pytest.mark.share(2)
@pytest.mark.parametrize("mixer", ["retnet", "gla", "deltanet"])
def test_a_few_wrong_kernels_of_chunks_are_not_proved(mixer: str) -> None:
    said = campaign(*in_chunks(mixer, 4), forwards(4), step=17)
    assert said[Status.REFUTED] == said.total() >= 4


@pytest.mark.full
@pytest.mark.parametrize(
    ("mixer", "chunk", "count"),
    [("retnet", 8, 101), ("gla", 8, 202), ("deltanet", 8, 96), ("rwkv7", 4, 361)],
)
def test_no_wrong_kernel_of_chunks_is_proved(mixer: str, chunk: int, count: int) -> None:
    said = campaign(*in_chunks(mixer, chunk), forwards(chunk))
    assert said[Status.REFUTED] == said.total() == count


@pytest.mark.ci
def test_a_few_wrong_gradients_are_not_proved() -> None:
    said = campaign(*gradient_in_chunks("retnet", 2), backwards(2), step=60)
    assert said[Status.UNDECIDED] == said.total() >= 3


@pytest.mark.full
@pytest.mark.parametrize(("mixer", "count"), [("retnet", 342), ("gla", 424), ("deltanet", 346)])
def test_no_wrong_gradient_of_chunks_is_proved(mixer: str, count: int) -> None:
    said = campaign(*gradient_in_chunks(mixer, 2), backwards(2))
    assert said[Status.UNDECIDED] == said.total() == count


@pytest.mark.full
def test_no_wrong_gradient_of_tokens_is_proved() -> None:
    said = campaign(*gradient_by_tokens("rg_lru"), backwards(1))
    assert said[Status.UNDECIDED] == said.total() == 134
