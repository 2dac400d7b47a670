"""Longhorn: S_i = (1 - Δ_i ⊗ k_i²) ⊙ S_{i-1} + (Δ_i u_i) k_iᵀ, y_i = S_i q_i.

Source: Longhorn (Liu et al. 2024), §3.2 and Algorithm 1. Row c of S is the solution s of
min ‖s - s_{i-1}‖² + β_c (s·k - u_c)², whose step is Δ_c = β_c / (1 + β_c ‖k‖²), with the diagonal
of Δ_c k kᵀ in its place.
"""

from __future__ import annotations

import torch
from torch import Tensor

DIMS = {"d": 4, "n": 3}
COMPLEX: frozenset[str] = frozenset()
CONSTRAINTS: dict[str, str] = {}


def shapes(dims: dict[str, int]) -> dict[str, dict[str, tuple[int, ...]]]:
    """Axes of every tensor; batch and time are left out."""
    d, n = dims["d"], dims["n"]
    return {
        "inputs": {"u": (d,)},
        "params": {"W_K": (n, d), "W_Q": (n, d), "W_beta": (d, d)},
        "buffers": {},
        "states": {"S": (d, n)},
        "output": {"y": (d,)},
    }


def forward(
    tensors: dict[str, Tensor], dims: dict[str, int], initial: dict[str, Tensor] | None = None
) -> tuple[Tensor, dict[str, Tensor]]:
    """The recurrence, token by token, channel by channel."""
    u = tensors["u"]
    batch, length = u.shape[:2]
    d, n = dims["d"], dims["n"]
    start = (initial or {}).get("S", u.new_zeros((batch, d, n)))
    rows = list(start.unbind(1))
    ys = []
    for i in range(length):
        k, q = u[:, i] @ tensors["W_K"].T, u[:, i] @ tensors["W_Q"].T
        rate = 1 / (1 + torch.exp(-(u[:, i] @ tensors["W_beta"].T)))
        outs = []
        for channel in range(d):
            beta = rate[:, channel, None]
            step = beta / (1 + beta * (k * k).sum(-1, keepdim=True))
            forget = step * k * k
            rows[channel] = (
                rows[channel] - forget * rows[channel] + step * u[:, i, channel, None] * k
            )
            outs.append((rows[channel] * q).sum(-1))
        ys.append(torch.stack(outs, 1))
    y = torch.stack(ys, 1) if ys else u.new_zeros((batch, 0, d))
    return y, {"S": torch.stack(rows, 1)}
