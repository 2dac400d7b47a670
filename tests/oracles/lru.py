"""LRU: λ = exp(-e^ν + i e^θ), h_i = λ h_{i-1} + e^γ (B u_i), y_i = Re(C h_i) + D u_i.

Source: Orvieto et al. 2023 eq. 7; as in the published code.
"""

from __future__ import annotations

import torch
from torch import Tensor

DIMS = {"d": 4, "n": 3}
COMPLEX = frozenset({"B", "C", "x"})
CONSTRAINTS: dict[str, str] = {}


def shapes(dims: dict[str, int]) -> dict[str, dict[str, tuple[int, ...]]]:
    """Axes of every tensor; batch and time are left out."""
    d, n = dims["d"], dims["n"]
    poles = {"nu": (n,), "theta": (n,), "gamma": (n,)}
    return {
        "inputs": {"u": (d,)},
        "params": {**poles, "B": (n, d), "C": (d, n), "D": (d,)},
        "buffers": {},
        "states": {"x": (n,)},
        "output": {"y": (d,)},
    }


def forward(
    tensors: dict[str, Tensor], dims: dict[str, int], initial: dict[str, Tensor] | None = None
) -> tuple[Tensor, dict[str, Tensor]]:
    """The recurrence, token by token."""
    u = tensors["u"]
    batch, length = u.shape[:2]
    field = u.dtype.to_complex()
    x = (initial or {}).get("x", u.new_zeros((batch, dims["n"]), dtype=field))
    decay = torch.exp(-torch.exp(tensors["nu"]) + 1j * torch.exp(tensors["theta"]))
    ys = []
    for i in range(length):
        x = decay * x + torch.exp(tensors["gamma"]) * (u[:, i].to(field) @ tensors["B"].T)
        ys.append((x @ tensors["C"].T).real + tensors["D"] * u[:, i])
    return torch.stack(ys, 1) if ys else u.new_zeros((batch, 0, dims["d"])), {"x": x}
