"""Bidirectional DLR: y_i = Σ_{j≤i} K→_{i-j} u_j + Σ_{j>i} K←_{j-i-1} u_j, each K = Re Σ w λ^l.

Source: Gupta et al. 2022 eq. 5-6; as printed.

Not causal. No skip: the spec overrides the output of dlr, so D u is not in it.
"""

from __future__ import annotations

import torch
from torch import Tensor

DIMS = {"d": 4, "n": 3, "m": 2}
COMPLEX = frozenset({"w", "w2"})
CONSTRAINTS: dict[str, str] = {}


def shapes(dims: dict[str, int]) -> dict[str, dict[str, tuple[int, ...]]]:
    """Axes of every tensor; batch and time are left out."""
    d, n, m = dims["d"], dims["n"], dims["m"]
    return {
        "inputs": {"u": (d,)},
        "params": {"a": (n,), "b": (n,), "w": (d, n), "a2": (m,), "b2": (m,), "w2": (d, m)},
        "buffers": {},
        "states": {},
        "output": {"y": (d,)},
    }


def forward(
    tensors: dict[str, Tensor], dims: dict[str, int], initial: dict[str, Tensor] | None = None
) -> tuple[Tensor, dict[str, Tensor]]:
    """The definition: the convolution with the kernel, lag by lag."""
    if initial:
        raise ValueError("a sum over the past has no initial state")
    u = tensors["u"]
    batch, length = u.shape[:2]
    lam = torch.exp(-(tensors["a"] ** 2) + 1j * tensors["b"])
    mu = torch.exp(-(tensors["a2"] ** 2) + 1j * tensors["b2"])
    ys = []
    for i in range(length):
        y = u.new_zeros((batch, dims["d"]))
        for j in range(i + 1):
            y = y + (tensors["w"] * lam ** (i - j)).sum(-1).real * u[:, j]
        for j in range(i + 1, length):
            y = y + (tensors["w2"] * mu ** (j - i - 1)).sum(-1).real * u[:, j]
        ys.append(y)
    return torch.stack(ys, 1) if ys else u.new_zeros((batch, 0, dims["d"])), {}
