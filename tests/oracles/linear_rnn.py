"""Dense linear RNN: x_i = A x_{i-1} + B u_i, y_i = C x_i.

Source: Gupta et al. 2022 §2.2; as printed.
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
        "params": {"A": (n, n), "B": (n, d), "C": (d, n)},
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
    x = (initial or {}).get("x", u.new_zeros((batch, dims["n"])))
    ys = []
    for i in range(length):
        x = x @ tensors["A"].T + u[:, i] @ tensors["B"].T
        ys.append(x @ tensors["C"].T)
    return torch.stack(ys, 1) if ys else u.new_zeros((batch, 0, dims["d"])), {"x": x}
