"""S6 (Mamba): S_i = e^(-Δ_i exp(a)) S_{i-1} + Δ_i u_i b_iᵀ, y_i = S_i c_i + D u_i.

Source: Sieber et al. 2024 eq. 4, 19; sign of A, type of B, constant D.

Corrected: A = -exp(a) < 0 elementwise per channel and state, B u is the outer product (Δ_i u_i)
b_iᵀ (Euler), and D is a constant diagonal, not a function of the input.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import softplus

DIMS = {"d": 5, "n": 3, "r": 2}
COMPLEX: frozenset[str] = frozenset()
CONSTRAINTS: dict[str, str] = {}


def shapes(dims: dict[str, int]) -> dict[str, dict[str, tuple[int, ...]]]:
    """Axes of every tensor; batch and time are left out."""
    d, n, r = dims["d"], dims["n"], dims["r"]
    maps = {"W_u": (r, d), "W_Delta": (d, r), "W_B": (n, d), "W_C": (n, d)}
    return {
        "inputs": {"u": (d,)},
        "params": {"a": (d, n), **maps, "b_Delta": (d,), "D": (d,)},
        "buffers": {},
        "states": {"S": (d, n)},
        "output": {"y": (d,)},
    }


def forward(
    tensors: dict[str, Tensor], dims: dict[str, int], initial: dict[str, Tensor] | None = None
) -> tuple[Tensor, dict[str, Tensor]]:
    """The recurrence, token by token."""
    u = tensors["u"]
    batch, length = u.shape[:2]
    matrix = (initial or {}).get("S", u.new_zeros((batch, dims["d"], dims["n"])))
    negative = -torch.exp(tensors["a"])
    ys = []
    for i in range(length):
        x = u[:, i]
        step = softplus(x @ tensors["W_u"].T @ tensors["W_Delta"].T + tensors["b_Delta"])
        b, c = x @ tensors["W_B"].T, x @ tensors["W_C"].T
        decay = torch.exp(step[..., None] * negative)
        matrix = decay * matrix + (step * x)[..., None] * b[:, None, :]
        ys.append((matrix * c[:, None, :]).sum(-1) + tensors["D"] * x)
    return torch.stack(ys, 1) if ys else u.new_zeros((batch, 0, dims["d"])), {"S": matrix}
