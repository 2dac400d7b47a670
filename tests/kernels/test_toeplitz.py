"""Kernels of convolutions for GPUs compute what loops over tokens do, and their gradients."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
import torch
from convolutions import Array, agree, by_tokens, drawn, planes, scan_of
from torch import Tensor

from dsfc.kernel_ir.interpret import interpret
from dsfc.kernel_ir.ir import Kernel
from dsfc.kernels.toeplitz import TURN_BITS, backward, forward

TOKENS = 4
"""Of a chunk."""
SIZES = {"G": 2, "B": 3, "C": 3, "N": 3, "BT": 2, "T": TOKENS}
"""Two groups; rows are no multiple of what a program has."""
CUBE = 1e-12
"""Largest relative error for each token: the cube of what the second part of a phase turns."""


@cache
def kernels(spec: str, wide: bool) -> tuple[Kernel, Kernel]:
    scan, adjoint = scan_of(spec)
    return forward(scan, wide), backward(scan, adjoint, wide)


def in_chunks(x: Tensor, chunks: int) -> Array:
    """Values channel by channel, in chunks, zeros first; the parts of complex ones apart."""
    x = x.detach().resolve_conj().permute(0, 3, 1, 2)
    x = torch.nn.functional.pad(x, (chunks * TOKENS - x.shape[-1], 0)).unflatten(-1, (-1, TOKENS))
    return (torch.stack((x.real, x.imag)) if x.is_complex() else x).numpy()


def in_order(x: Array, length: int) -> Array:
    """The other way."""
    rows = x.reshape(*x.shape[:-2], -1)[..., x.shape[-2] * x.shape[-1] - length :]
    rows = np.moveaxis(rows, -3, -1)
    return np.moveaxis(rows, 0, -1) if rows.ndim == 5 else rows


def logarithm(g: Tensor) -> dict[str, Array]:
    """Log |λ|, finite, and the phase in two parts."""
    size = {"size": g.real.clamp_min(-1e30).detach().numpy()}
    if not g.is_complex():
        return size
    phase = g.imag.detach() - 2 * math.pi * torch.round(g.imag.detach() / (2 * math.pi))
    turn = torch.round(phase * 2**TURN_BITS) / 2**TURN_BITS
    return size | {"turn": turn.numpy(), "turn_rest": (phase - turn).numpy()}


def check(spec: str, length: int, wide: bool = False, strong: bool = False) -> None:
    """Runs both kernels beside the loop over tokens."""
    chunks = -(-length // TOKENS)
    span = max(math.isqrt(chunks - 1), 1)
    sizes = SIZES | {"L": length, "CHUNKS": chunks, "PAD": chunks * TOKENS - length}
    sizes |= {"SPAN": span, "SPANS": -(-(chunks - 1) // span)}
    x = drawn(spec, wide, length, strong, SIZES)
    leaves = {name: x[name].requires_grad_() for name in ("q", "k", "v", "g", "S")}
    outs = by_tokens(x, wide)
    ramp = np.maximum(np.arange(2 * TOKENS + 1.0) - TOKENS, 0)
    ahead, back = kernels(spec, wide)
    arguments = {name: planes(x[name]) for name in "qk"} | logarithm(x["g"])
    arguments["S"] = planes(x["S"].movedim(1, -1))
    arguments |= {"v": in_chunks(x["v"], chunks), "ramp": ramp}
    values = interpret(ahead, arguments, sizes)
    agree(in_order(values["o"], length), outs[0], length, "o", CUBE)
    agree(values["S_last"], outs[1].movedim(1, -1), length, "S_last", CUBE)
    # PyTorch's gradient is the adjoint at the conjugates.
    arguments = {name: planes(x[name].conj()) for name in "qk"}
    arguments["S"] = planes(x["S"].movedim(1, -1).conj())
    arguments |= logarithm(x["g"].conj())
    arguments |= {"v": in_chunks(x["v"].conj(), chunks), "do": in_chunks(x["do"], chunks)}
    arguments |= {"dS_last": planes(x["dS_last"].movedim(1, -1)), "ramp": ramp}
    gradients = interpret(back, arguments, sizes)
    wanted = torch.autograd.grad(outs, list(leaves.values()), (x["do"], x["dS_last"]))
    for name, want in zip(leaves, wanted, strict=True):
        got = gradients[f"d{name}"]
        got = in_order(got, length) if name == "v" else got if name == "S" else got.sum(1)
        want = want.movedim(1, -1) if name == "S" else want
        agree(got, want, length, f"d{name}", CUBE)


@pytest.mark.share(4)
@pytest.mark.parametrize("length", [1, TOKENS - 1, TOKENS, TOKENS + 1, 3 * TOKENS, 37])
@pytest.mark.parametrize("spec", ["s4d", "mega_ema"])
def test_chunks_are_the_loop_at_every_length(spec: str, length: int) -> None:
    check(spec, length)


@pytest.mark.parametrize("spec", ["s4d", "mega_ema"])
def test_states_that_are_forgotten_at_once_leave_nothing_behind(spec: str) -> None:
    check(spec, 11, strong=True)


def test_complex_values_have_complex_outputs() -> None:
    check("s4d", 11, wide=True)
