"""HGRN: h_i = f_i e^(iθ) h_{i-1} + (1 - f_i) x_i, y_i = g_i ⊙ [Re h_i, Im h_i].

f = lb + (1 - lb) σ(W_f u), x = silu(W_re u) + i silu(W_im u), g = σ(W_g u).

Source: Qin et al. 2023, "Hierarchically Gated Recurrent Neural Network for Sequence Modeling",
section 3.2, without biases, output norm and projection.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import silu

DIMS = {"d": 4, "c": 2}
COMPLEX = frozenset({"h"})
CONSTRAINTS = {"lb": "unit"}


def shapes(dims: dict[str, int]) -> dict[str, dict[str, tuple[int, ...]]]:
    """Axes of every tensor; batch and time are left out."""
    d, c = dims["d"], dims["c"]
    maps = {"W_re": (d, d), "W_im": (d, d), "W_f": (d, d), "W_g": (d, c, d)}
    return {
        "inputs": {"u": (d,)},
        "params": {**maps, "theta": (d,)},
        "buffers": {"lb": ()},
        "states": {"h": (d,)},
        "output": {"y": (d, c)},
    }


def forward(
    tensors: dict[str, Tensor], dims: dict[str, int], initial: dict[str, Tensor] | None = None
) -> tuple[Tensor, dict[str, Tensor]]:
    """The recurrence, token by token."""
    t = tensors
    u = t["u"]
    batch, length = u.shape[:2]
    h = (initial or {}).get("h", u.new_zeros((batch, dims["d"]), dtype=u.dtype.to_complex()))
    turn = torch.cos(t["theta"]) + 1j * torch.sin(t["theta"])
    ys = []
    for i in range(length):
        f = t["lb"] + (1 - t["lb"]) * torch.sigmoid(u[:, i] @ t["W_f"].T)
        x = silu(u[:, i] @ t["W_re"].T) + 1j * silu(u[:, i] @ t["W_im"].T)
        h = f * turn * h + (1 - f) * x
        gate = torch.sigmoid(torch.einsum("eca,ba->bec", t["W_g"], u[:, i]))
        ys.append(gate * torch.stack([h.real, h.imag], -1))
    y = torch.stack(ys, 1) if ys else u.new_zeros((batch, 0, dims["d"], dims["c"]))
    return y, {"h": h}
