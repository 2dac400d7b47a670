"""DSS-EXP: h_i = e^(ΔΛ) h_{i-1} + u_i, y_i = Re Σ_n w_n ((e^(ΔΛ_n) - 1)/Λ_n) h_{i,n}.

Source: Gupta et al. 2022 §2.1; divided by Λ, not by Δ.

Λ = -e^a + iω is shared by the channels, Δ = e^(log_Δ) is one per channel.
"""

from __future__ import annotations

import torch
from torch import Tensor

DIMS = {"d": 4, "n": 3}
COMPLEX = frozenset({"W", "x"})
CONSTRAINTS: dict[str, str] = {}


def shapes(dims: dict[str, int]) -> dict[str, dict[str, tuple[int, ...]]]:
    """Axes of every tensor; batch and time are left out."""
    d, n = dims["d"], dims["n"]
    return {
        "inputs": {"u": (d,)},
        "params": {"a": (n,), "omega": (n,), "W": (d, n), "log_Delta": (d,)},
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
    weight = tensors["W"] * (decay - 1) / pole
    ys = []
    for i in range(length):
        x = decay * x + u[:, i, :, None]
        ys.append((weight * x).sum(-1).real)
    return torch.stack(ys, 1) if ys else u.new_zeros((batch, 0, dims["d"])), {"x": x}
