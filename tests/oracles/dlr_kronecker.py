"""Kronecker product of DLRs: kernel Re(Σ_n w_n λ_n^l · Σ_m w2_m μ_m^l), plus D u_i.

Source: Gupta et al. 2022 App. A.2; product taken before the cast.

λ = exp(-a² + ib), μ = exp(-a2² + i b2); the elementwise product of the two kernels is one DLR of
size n·m.
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
        "params": {
            "a": (n,),
            "b": (n,),
            "w": (d, n),
            "D": (d,),
            "a2": (m,),
            "b2": (m,),
            "w2": (d, m),
        },
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
        y = tensors["D"] * u[:, i]
        for j in range(i + 1):
            first = (tensors["w"] * lam ** (i - j)).sum(-1)
            second = (tensors["w2"] * mu ** (i - j)).sum(-1)
            y = y + (first * second).real * u[:, j]
        ys.append(y)
    return torch.stack(ys, 1) if ys else u.new_zeros((batch, 0, dims["d"])), {}
