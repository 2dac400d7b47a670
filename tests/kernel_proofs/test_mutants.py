"""No changed kernel is proved that computes something else."""

from __future__ import annotations

from collections import Counter
from itertools import islice

import numpy as np
import pytest
from mutants import mutants

from dsfc.kernel_ir.interpret import KernelError, interpret
from dsfc.kernel_ir.ir import Access, Kernel
from dsfc.kernel_proofs.prove import Status, prove
from dsfc.plan.scan_ir import Scan
from kernels import by_tokens, in_chunks

SIZES = {"B": 2, "H": 3, "N": 3, "P": 5, "PT": 2, "CHANNELS": 5, "BLOCK": 2}


def is_the_same(kernel: Kernel, other: Kernel, chunk: int) -> bool:
    """Whether two kernels write the same numbers, for lengths with and without a ragged end."""
    draw = np.random.default_rng(7)
    for length in (1, 2 * chunk, 2 * chunk + 3):
        sizes = {**SIZES, "L": length}
        given = {
            a.name: draw.normal(size=[sizes[getattr(s, "name", "")] for s in a.shape])
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


def campaign(kernel: Kernel, scan: Scan, chunk: int, step: int = 1) -> Counter[Status]:
    """What is said of the mutants that compute something else; those proved must be the same."""
    assert prove(kernel, scan).status is Status.PROVED
    said: Counter[Status] = Counter()
    for what, mutant in islice(mutants(kernel), 0, None, step):
        verdict = prove(mutant, scan)
        same = is_the_same(kernel, mutant, chunk)
        assert same or verdict.status is not Status.PROVED, what
        assert not same or verdict.status is not Status.REFUTED, what
        said[verdict.status] += not same
    return said


def test_no_wrong_kernel_of_a_scan_without_keys_is_proved() -> None:
    said = campaign(*by_tokens("rg_lru"), 1)
    assert said[Status.REFUTED] == said.total() >= 30


@pytest.mark.parametrize("mixer", ["retnet", "gla", "deltanet"])
def test_a_few_wrong_kernels_of_chunks_are_not_proved(mixer: str) -> None:
    said = campaign(*in_chunks(mixer, 4), 4, step=17)
    assert said[Status.REFUTED] == said.total() >= 4


@pytest.mark.full
@pytest.mark.parametrize(
    ("mixer", "chunk", "count"),
    [("retnet", 32, 90), ("gla", 16, 210), ("deltanet", 16, 80), ("rwkv7", 8, 150)],
)
def test_no_wrong_kernel_of_chunks_is_proved(mixer: str, chunk: int, count: int) -> None:
    said = campaign(*in_chunks(mixer, chunk), chunk)
    assert said[Status.REFUTED] >= count
    assert said.total() - said[Status.REFUTED] <= 6
