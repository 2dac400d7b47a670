"""Short convolution: y_i = Σ_{r<t} w_r u_{i-r} + b, causal and depthwise, u_{<0} = 0.

Source: Rickenbach et al. 2025 §5.2; no activation, as the text states none.
"""

from __future__ import annotations

import torch
from torch import Tensor

DIMS = {"d": 3, "t": 4}
COMPLEX: frozenset[str] = frozenset()
CONSTRAINTS: dict[str, str] = {}


def shapes(dims: dict[str, int]) -> dict[str, dict[str, tuple[int, ...]]]:
    """Axes of every tensor; batch and time are left out."""
    d, t = dims["d"], dims["t"]
    return {
        "inputs": {"u": (d,)},
        "params": {"w": (d, t), "b": (d,)},
        "buffers": {},
        "states": {},
        "output": {"y": (d,)},
    }


def forward(
    tensors: dict[str, Tensor], dims: dict[str, int], initial: dict[str, Tensor] | None = None
) -> tuple[Tensor, dict[str, Tensor]]:
    """The definition, tap by tap."""
    if initial:
        raise ValueError("a finite filter has no declared state")
    u = tensors["u"]
    batch, length = u.shape[:2]
    ys = []
    for i in range(length):
        y = tensors["b"].expand(batch, dims["d"])
        for r in range(dims["t"]):
            if i - r >= 0:
                y = y + tensors["w"][:, r] * u[:, i - r]
        ys.append(y)
    return torch.stack(ys, 1) if ys else u.new_zeros((batch, 0, dims["d"])), {}
