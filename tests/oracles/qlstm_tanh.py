"""Quasi-LSTM with tanh: h_i = σ(W_f u) h_{i-1} + σ(W_i u) tanh(W_u u), y_i = σ(W_o u) tanh(h_i).

Source: Sieber et al. 2024 eq. 8; as printed.
"""

from __future__ import annotations

import torch
from torch import Tensor

DIMS = {"d": 4}
COMPLEX: frozenset[str] = frozenset()
CONSTRAINTS: dict[str, str] = {}


def shapes(dims: dict[str, int]) -> dict[str, dict[str, tuple[int, ...]]]:
    """Axes of every tensor; batch and time are left out."""
    d = dims["d"]
    return {
        "inputs": {"u": (d,)},
        "params": {"W_f": (d, d), "W_i": (d, d), "W_o": (d, d), "W_u": (d, d)},
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
        forget = torch.sigmoid(x @ tensors["W_f"].T)
        gate_in, gate_out = torch.sigmoid(x @ tensors["W_i"].T), torch.sigmoid(x @ tensors["W_o"].T)
        hidden = forget * hidden + gate_in * torch.tanh(x @ tensors["W_u"].T)
        ys.append(gate_out * torch.tanh(hidden))
    return torch.stack(ys, 1) if ys else u.new_zeros((batch, 0, dims["d"])), {"h": hidden}
