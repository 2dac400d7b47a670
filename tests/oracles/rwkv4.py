"""RWKV-4: y_i = W_o(σ(r_i) num_i / den_i), den_i being num_i without v.

num_i = Σ_{j<i} e^(k_j - (i-1-j)w) v_j + e^(bonus+k_i) v_i.

Source: Anonymous 2025 eq. 2; b_{t-1}, bonus, σ(r) restored in Wang et al. 2025.

r, k, v are linear maps of μ u_i + (1 - μ) u_{i-1} (u_{-1} = 0), w = exp(ω) > 0 per channel.
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
    vectors = {"mu_r": (d,), "mu_k": (d,), "mu_v": (d,), "omega": (d,), "bonus": (d,)}
    return {
        "inputs": {"u": (d,)},
        "params": {**vectors, "W_r": (d, d), "W_k": (d, d), "W_v": (d, d), "W_o": (d, d)},
        "buffers": {},
        "states": {},
        "output": {"y": (d,)},
    }


def forward(
    tensors: dict[str, Tensor], dims: dict[str, int], initial: dict[str, Tensor] | None = None
) -> tuple[Tensor, dict[str, Tensor]]:
    """The definition: for each i, a weighted mean of the values at j ≤ i."""
    if initial:
        raise ValueError("a sum over the past has no initial state")
    u, w = tensors["u"], torch.exp(tensors["omega"])
    batch, length = u.shape[:2]
    r: list[Tensor] = []
    k: list[Tensor] = []
    v: list[Tensor] = []
    for i in range(length):
        last = u[:, i - 1] if i else torch.zeros_like(u[:, 0])
        for letter, stream in (("r", r), ("k", k), ("v", v)):
            mu = tensors[f"mu_{letter}"]
            stream.append((mu * u[:, i] + (1 - mu) * last) @ tensors[f"W_{letter}"].T)
    ys = []
    for i in range(length):
        below = torch.exp(tensors["bonus"] + k[i])
        above = below * v[i]
        for j in range(i):
            weight = torch.exp(k[j] - (i - 1 - j) * w)
            above, below = above + weight * v[j], below + weight
        ys.append((torch.sigmoid(r[i]) * above / below) @ tensors["W_o"].T)
    return torch.stack(ys, 1) if ys else u.new_zeros((batch, 0, dims["d"])), {}
