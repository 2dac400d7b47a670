"""RG-LRU: a = exp(-8 softplus(ζ) r), h_i = a h_{i-1} + √(1-a²) g u_i, y = h.

Source: Sieber et al. 2024 eq. 9-10, 21; the input u_i restored in Wang et al. 2025 eq. 7.

r = σ(W_r u + b_r) and g = σ(W_g u + b_g) with full gate matrices; no reset of the first step.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import softplus

DIMS = {"d": 4}
COMPLEX: frozenset[str] = frozenset()
CONSTRAINTS: dict[str, str] = {}


def shapes(dims: dict[str, int]) -> dict[str, dict[str, tuple[int, ...]]]:
    """Axes of every tensor; batch and time are left out."""
    d = dims["d"]
    return {
        "inputs": {"u": (d,)},
        "params": {"W_r": (d, d), "W_g": (d, d), "b_r": (d,), "b_g": (d,), "zeta": (d,)},
        "buffers": {},
        "states": {"h": (d,)},
        "output": {"y": (d,)},
    }


def forward(
    tensors: dict[str, Tensor], dims: dict[str, int], initial: dict[str, Tensor] | None = None
) -> tuple[Tensor, dict[str, Tensor]]:
    """The recurrence, token by token."""
    u = tensors["u"]
    batch, length = u.shape[:2]
    hidden = (initial or {}).get("h", u.new_zeros((batch, dims["d"])))
    ys = []
    for i in range(length):
        x = u[:, i]
        r = torch.sigmoid(x @ tensors["W_r"].T + tensors["b_r"])
        g = torch.sigmoid(x @ tensors["W_g"].T + tensors["b_g"])
        a = torch.exp(-8 * softplus(tensors["zeta"]) * r)
        hidden = a * hidden + torch.sqrt(1 - a**2) * g * x
        ys.append(hidden)
    return torch.stack(ys, 1) if ys else u.new_zeros((batch, 0, dims["d"])), {"h": hidden}
