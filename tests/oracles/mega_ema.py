"""Mega's damped EMA: x_i = (1 - p σ(α)) x_{i-1} + p β u_i, p = σ(δ).

y_i = silu(n^(-1/2) Σ_n γ x_i + ω u_i).

Source: Gupta et al. 2022 §3.3, Wang et al. 2025; names as in the code.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import silu

DIMS = {"d": 4, "n": 3}
COMPLEX: frozenset[str] = frozenset()
CONSTRAINTS: dict[str, str] = {}


def shapes(dims: dict[str, int]) -> dict[str, dict[str, tuple[int, ...]]]:
    """Axes of every tensor; batch and time are left out."""
    d, n = dims["d"], dims["n"]
    modes = {"delta": (d, n), "alpha": (d, n), "beta": (d, n), "gamma": (d, n)}
    return {
        "inputs": {"u": (d,)},
        "params": {**modes, "omega": (d,)},
        "buffers": {},
        "states": {"x": (d, n)},
        "output": {"y": (d,)},
    }


def forward(
    tensors: dict[str, Tensor], dims: dict[str, int], initial: dict[str, Tensor] | None = None
) -> tuple[Tensor, dict[str, Tensor]]:
    """The recurrence, token by token."""
    u = tensors["u"]
    batch, length = u.shape[:2]
    x = (initial or {}).get("x", u.new_zeros((batch, dims["d"], dims["n"])))
    p = torch.sigmoid(tensors["delta"])
    decay = 1 - p * torch.sigmoid(tensors["alpha"])
    ys = []
    for i in range(length):
        x = decay * x + p * tensors["beta"] * u[:, i, :, None]
        mixed = (tensors["gamma"] * x).sum(-1) / dims["n"] ** 0.5
        ys.append(silu(mixed + tensors["omega"] * u[:, i]))
    return torch.stack(ys, 1) if ys else u.new_zeros((batch, 0, dims["d"])), {"x": x}
