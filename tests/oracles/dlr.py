"""DLR: λ = exp(-a² + ib), y_i = Σ_{j≤i} Re(Σ_n w_n λ_n^(i-j)) u_j + D u_i.

Source: Gupta et al. 2022 §2.3; skip D as in the code.

λ is shared by the channels; ⟨w, λ^l⟩ is bilinear, without conjugation.
"""

from __future__ import annotations

import torch
from torch import Tensor

DIMS = {"d": 4, "n": 3}
COMPLEX = frozenset({"w"})
CONSTRAINTS: dict[str, str] = {}


def shapes(dims: dict[str, int]) -> dict[str, dict[str, tuple[int, ...]]]:
    """Axes of every tensor; batch and time are left out."""
    d, n = dims["d"], dims["n"]
    return {
        "inputs": {"u": (d,)},
        "params": {"a": (n,), "b": (n,), "w": (d, n), "D": (d,)},
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
    ys = []
    for i in range(length):
        y = tensors["D"] * u[:, i]
        for j in range(i + 1):
            y = y + (tensors["w"] * lam ** (i - j)).sum(-1).real * u[:, j]
        ys.append(y)
    return torch.stack(ys, 1) if ys else u.new_zeros((batch, 0, dims["d"])), {}
