"""S4D, zero-order hold: h_i = e^(ΔA) h_{i-1} + ((e^(ΔA) - 1)/A) B u_i, y = 2 Re(Σ C h) + D u.

Source: Wang et al. 2025 eq. 2, ZOH; sign of footnote 2.

A = -e^a + iω and B, C per channel and mode; Δ = e^(log_Δ) per channel.
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
    modes = {"a": (d, n), "omega": (d, n), "B": (d, n), "C": (d, n)}
    return {
        "inputs": {"u": (d,)},
        "params": {**modes, "log_Delta": (d,), "D": (d,)},
        "buffers": {},
        "states": {"x": (d, n)},
        "output": {"y": (d,)},
    }


def forward(
    tensors: dict[str, Tensor], dims: dict[str, int], initial: dict[str, Tensor] | None = None
) -> tuple[Tensor, dict[str, Tensor]]:
    """The discretised system, token by token."""
    u = tensors["u"]
    batch, length = u.shape[:2]
    zero = u.new_zeros((batch, dims["d"], dims["n"]), dtype=u.dtype.to_complex())
    x = (initial or {}).get("x", zero)
    pole = -torch.exp(tensors["a"]) + 1j * tensors["omega"]
    decay = torch.exp(torch.exp(tensors["log_Delta"])[:, None] * pole)
    drive = (decay - 1) / pole * tensors["B"]
    ys = []
    for i in range(length):
        x = decay * x + drive * u[:, i, :, None]
        ys.append(2 * (tensors["C"] * x).sum(-1).real + tensors["D"] * u[:, i])
    return torch.stack(ys, 1) if ys else u.new_zeros((batch, 0, dims["d"])), {"x": x}
