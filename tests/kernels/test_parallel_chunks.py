"""Kernels whose chunks run side by side compute what a loop over tokens does, and its gradients."""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import pytest
from by_tokens import FORMS, UNDECAYED, Array, agree, drawn, expected, scan_of, sizes_of

from dsfc.kernel_ir.interpret import interpret
from dsfc.kernel_ir.ir import Access, Kernel, Storage
from dsfc.kernels import chunkwise
from dsfc.kernels.parallel_chunks import backward, forward

# What a kernel computes of tokens beyond the end is never stored, but NumPy speaks of it.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

CHUNK = 4


@cache
def kernels(spec: str, chunk: int = CHUNK) -> tuple[tuple[Kernel, ...], tuple[Kernel, ...]]:
    scan, adjoint = scan_of(spec)
    return forward(scan, chunk), backward(scan, adjoint, chunk)


def run(
    launches: tuple[Kernel, ...], read: dict[str, Array], sizes: dict[str, int]
) -> dict[str, Array]:
    """Everything that kernels write, each of which reads what those before it wrote."""
    known = dict(read)
    for k in launches:
        given = {a.name: known[a.name] for a in k.arguments if a.access is Access.READ}
        known |= interpret(k, given, sizes)
    return known


def check(spec: str, sizes: dict[str, int], strong: bool, chunk: int = CHUNK) -> None:
    """Runs both passes beside the loop over tokens; sizes of parts are 2."""
    sizes = sizes | {"NT": 2}
    scan, adjoint = scan_of(spec)
    read = drawn(chunkwise.backward(scan, adjoint, False), sizes, strong)
    outputs, gradients = expected(read, sizes["H"])
    ahead, back = kernels(spec, chunk)
    agree({n: x for n, x in run(ahead, read, sizes).items() if n in outputs}, outputs)
    got = {n: x for n, x in run(back, read, sizes).items() if n in gradients}
    # Strengths of parts of the keys are added up by the caller.
    agree({n: x.sum(3) if x.ndim > gradients[n].ndim else x for n, x in got.items()}, gradients)


@pytest.mark.share(8)
@pytest.mark.parametrize("strong", [False, True], ids=["mild", "strong"])
@pytest.mark.parametrize("length", [0, 1, CHUNK, CHUNK + 1, 2 * CHUNK + 3])
@pytest.mark.parametrize("spec", FORMS)
def test_chunks_are_the_loop_at_every_length(spec: str, length: int, strong: bool) -> None:
    scan, _ = scan_of(spec)
    check(spec, sizes_of(scan, length), strong)


@pytest.mark.parametrize("spec", UNDECAYED)
def test_chunks_without_a_decay_are_the_loop(spec: str) -> None:
    scan, _ = scan_of(spec)
    check(spec, sizes_of(scan, 2 * CHUNK + 1), strong=False)


@pytest.mark.share(6)
@pytest.mark.parametrize("spec", FORMS)
def test_any_number_of_keys_and_channels_will_do(spec: str) -> None:
    scan, _ = scan_of(spec)
    for keys, channels in itertools.product((1, 3, 5), repeat=2):
        check(spec, sizes_of(scan, CHUNK + 2, keys, channels, rows=2), strong=True)


@pytest.mark.share(9)
@pytest.mark.parametrize("chunk", [2, 8, 16])
@pytest.mark.parametrize("spec", FORMS)
def test_chunks_of_any_power_of_two_are_the_loop(spec: str, chunk: int) -> None:
    scan, _ = scan_of(spec)
    check(spec, sizes_of(scan, 19), True, chunk)


@pytest.mark.parametrize("spec", FORMS | UNDECAYED)
def test_what_a_kernel_reads_is_an_argument_or_was_written_before(spec: str) -> None:
    """And nothing is written that nobody reads."""
    given = {"q", "k", "v", "a", "b", "g", "r", "S", "do", "dS_last"}
    for launches, results in zip(kernels(spec), ({"o", "S_last"}, None), strict=True):
        written: set[str] = set()
        read: set[str] = set()
        for k in launches:
            reads = {a.name for a in k.arguments if a.access is Access.READ}
            assert reads <= given | written, k.name
            written |= {a.name for a in k.arguments if a.access is Access.WRITE}
            read |= reads
        gradients = {n for n in written - read if n.startswith("d")}
        assert written - read == (results if results is not None else gradients)


@pytest.mark.parametrize("spec", FORMS)
def test_only_what_is_kept_may_be_narrow(spec: str) -> None:
    """The inverse of a system is not: what it solves would lose half of its digits."""
    for launches in kernels(spec):
        for k in launches:
            for a in k.arguments:
                assert (a.storage is Storage.KEPT) <= (a.name not in ("inverse", "S", "g", "r"))


def test_programs_of_chunks_share_nothing_that_they_write() -> None:
    """Each chunk's results depend on its own arguments and what was kept for it."""
    scan, adjoint = scan_of("kda")
    sizes = sizes_of(scan, 3 * CHUNK) | {"NT": 2}
    read = drawn(chunkwise.backward(scan, adjoint, False), sizes, strong=False)
    pairs = kernels("kda")[1][0]
    other = {n: x.copy() for n, x in read.items()}
    other["k"][:, CHUNK : 2 * CHUNK] += 1
    names = {a.name for a in pairs.arguments if a.access is Access.READ}
    first, second = (interpret(pairs, {n: x[n] for n in names}, sizes) for x in (read, other))
    for name in ("q_k", "k_k", "inverse"):
        same = np.all(first[name] == second[name], axis=(0, 1, 3, 4))
        assert same.tolist() == [True, False, True]
