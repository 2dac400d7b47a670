"""Kernels that go chunk by chunk compute what a loop over tokens does, and its gradients."""

from __future__ import annotations

from functools import cache

import pytest
from by_tokens import FORMS, UNDECAYED, agree, drawn, expected, scan_of, sizes_of

from dsfc.kernel_ir.interpret import interpret
from dsfc.kernel_ir.ir import Kernel
from dsfc.kernels.chunkwise import CHUNK, backward, forward, has_chunks

# What a kernel computes of tokens beyond the end is never stored, but NumPy speaks of it.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@cache
def kernels(spec: str, shared: bool) -> tuple[Kernel, Kernel]:
    scan, adjoint = scan_of(spec)
    return forward(scan, shared), backward(scan, adjoint, shared)


def check(spec: str, sizes: dict[str, int], strong: bool, shared: bool = False) -> None:
    """Runs both kernels beside the loop over tokens."""
    ahead, back = kernels(spec, shared)
    read = drawn(back, sizes, strong)
    outputs, gradients = expected(read, sizes["H"])
    agree(interpret(back, read, sizes), gradients)
    names = {a.name for a in ahead.arguments}
    agree(interpret(ahead, {n: x for n, x in read.items() if n in names}, sizes), outputs)


@pytest.mark.parametrize("spec", FORMS | UNDECAYED)
def test_every_form_has_chunks(spec: str) -> None:
    scan, _ = scan_of(spec)
    assert scan.form is (FORMS | UNDECAYED)[spec] and has_chunks(scan)
    assert (scan.decay is None) == (spec in UNDECAYED)


@pytest.mark.share(6)
@pytest.mark.parametrize("strong", [False, True], ids=["mild", "strong"])
@pytest.mark.parametrize("more", [(0, 0), (0, 1), (1, -1), (1, 0), (1, 1), (2, 3)])
@pytest.mark.parametrize("spec", FORMS)
def test_chunks_are_the_loop_at_every_length(
    spec: str, more: tuple[int, int], strong: bool
) -> None:
    scan, _ = scan_of(spec)
    chunks, tokens = more
    check(spec, sizes_of(scan, chunks * CHUNK[scan.form] + tokens), strong)


@pytest.mark.parametrize("tokens", [1, 35])
@pytest.mark.parametrize("spec", UNDECAYED)
def test_chunks_without_a_decay_are_the_loop(spec: str, tokens: int) -> None:
    scan, _ = scan_of(spec)
    check(spec, sizes_of(scan, tokens), strong=False)


@pytest.mark.share(2)
@pytest.mark.parametrize("keys", [1, 3, 5])
@pytest.mark.parametrize("channels", [1, 3, 5])
@pytest.mark.parametrize("spec", FORMS)
def test_any_number_of_keys_and_channels_will_do(spec: str, keys: int, channels: int) -> None:
    scan, _ = scan_of(spec)
    check(spec, sizes_of(scan, 7, keys, channels), strong=True)


@pytest.mark.share(2)
@pytest.mark.parametrize("span", [1, 2])
@pytest.mark.parametrize("spec", FORMS)
def test_gradients_do_not_depend_on_how_many_states_are_kept(spec: str, span: int) -> None:
    scan, _ = scan_of(spec)
    check(spec, sizes_of(scan, 2 * CHUNK[scan.form] + 3, span=span), strong=True)


@pytest.mark.parametrize("spec", FORMS)
def test_heads_that_share_keys_read_those_without_heads(spec: str) -> None:
    scan, _ = scan_of(spec)
    check(spec, sizes_of(scan, CHUNK[scan.form] + 1, rows=2), strong=True, shared=True)
