"""Kernels of convolutions compute, in float64, what loops over tokens do, and their gradients."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch
from convolutions import agree, by_tokens, drawn, planes, scan_of
from torch import Tensor

from dsfc.kernel_ir.interpret import interpret
from dsfc.kernel_ir.ir import Kernel
from dsfc.kernels.convolution import backward, forward, has_convolution

TOKENS = 4
"""Of a chunk."""
SIZES = {"G": 2, "B": 3, "C": 3, "N": 3, "BT": 2, "CT": 2, "SPAN": 2, "R": 4, "T": TOKENS}
"""Two groups; rows, and channels, are no multiple of what a program has; spans of two chunks."""


@cache
def kernels(spec: str, wide: bool) -> tuple[Kernel, Kernel]:
    scan, adjoint = scan_of(spec)
    return forward(scan, wide), backward(scan, adjoint, wide)


def powers(g: Tensor) -> Tensor:
    """λ^i for i ≤ TOKENS; λ^0 is 1 where log λ is minus infinity too."""
    steps = torch.arange(TOKENS + 1)
    return torch.where(steps == 0, 1, torch.exp(g)[..., None] ** steps)


def check(spec: str, length: int, wide: bool = False, strong: bool = False) -> None:
    """Runs both kernels beside the loop over tokens."""
    sizes = SIZES | {"L": length}
    x = drawn(spec, wide, length, strong, SIZES)
    leaves = {name: x[name].requires_grad_() for name in ("q", "k", "v", "g", "S")}
    outs = by_tokens(x, wide)
    table = powers(x["g"])
    arguments = {name: planes(x[name]) for name in ("q", "k", "v", "S")}
    arguments |= {"look": planes(table), "past": planes(table.flip(-1))}
    ahead, back = kernels(spec, wide)
    values = interpret(ahead, arguments, sizes)
    agree(values["o"], outs[0], length, "o")
    agree(values["S_last"], outs[1], length, "S_last")
    # PyTorch's gradient is the adjoint at the conjugates.
    table = table.conj()
    arguments = {name: planes(x[name].conj()) for name in ("q", "k", "S")}
    arguments |= {name: planes(x[name]) for name in ("do", "dS_last")} | {
        "v": planes(x["v"].conj())
    }
    arguments |= {"look": planes(table.flip(-1)), "past": planes(table.flip(-1))}
    steps = np.arange(TOKENS + 1.0)
    arguments |= {"powers": planes(table), "steps": steps, "lags": steps[::-1]}
    gradients = interpret(back, arguments, sizes)
    outputs = outs if length else outs[1:]
    bars = (x["do"], x["dS_last"]) if length else (x["dS_last"],)
    wanted = torch.autograd.grad(
        outputs, list(leaves.values()), bars, allow_unused=True, materialize_grads=True
    )
    for name, want in zip(leaves, wanted, strict=True):
        got = gradients[f"d{name}"]
        agree(got if name in ("v", "S") else got.sum(1), want, length, f"d{name}")


@pytest.mark.share(6)
@pytest.mark.parametrize("length", [0, 1, TOKENS - 1, TOKENS, TOKENS + 1, 3 * TOKENS, 17])
@pytest.mark.parametrize("spec", ["s4d", "mega_ema"])
def test_chunks_are_the_loop_at_every_length(spec: str, length: int) -> None:
    scan, _ = scan_of(spec)
    assert has_convolution(scan)
    check(spec, length)


@pytest.mark.parametrize("spec", ["s4d", "mega_ema"])
def test_states_that_are_forgotten_at_once_leave_nothing_behind(spec: str) -> None:
    check(spec, 11, strong=True)


def test_complex_values_have_complex_outputs() -> None:
    check("s4d", 11, wide=True)
