"""Taylor softmax of order 2: softmax attention with e^s replaced by 1 + s + s²/2.

Source: Sieber et al. 2024 §3.2.1, Lemma 1; even order, so η > 0.

s = τ q_i·k_j with τ = n^(-1/2), that is q and k each divided by n^(1/4).
"""

from __future__ import annotations

import torch
from torch import Tensor

DIMS = {"d": 6, "h": 2, "n": 4, "p": 3}
COMPLEX: frozenset[str] = frozenset()
CONSTRAINTS: dict[str, str] = {}


def shapes(dims: dict[str, int]) -> dict[str, dict[str, tuple[int, ...]]]:
    """Axes of every tensor; batch and time are left out."""
    d, h, n, p = (dims[axis] for axis in ("d", "h", "n", "p"))
    return {
        "inputs": {"u": (d,)},
        "params": {"W_Q": (h, n, d), "W_K": (h, n, d), "W_V": (h, p, d)},
        "buffers": {},
        "states": {},
        "output": {"y": (h, p)},
    }


def forward(
    tensors: dict[str, Tensor], dims: dict[str, int], initial: dict[str, Tensor] | None = None
) -> tuple[Tensor, dict[str, Tensor]]:
    """The definition: for each i, a weighted mean of the values at j ≤ i."""
    if initial:
        raise ValueError("a sum over the past has no initial state")
    u = tensors["u"]
    batch, length = u.shape[:2]
    shape = (batch, dims["h"], dims["p"])
    q = torch.einsum("hnd,bld->blhn", tensors["W_Q"], u)
    k = torch.einsum("hnd,bld->blhn", tensors["W_K"], u)
    v = torch.einsum("hpd,bld->blhp", tensors["W_V"], u)
    ys = []
    for i in range(length):
        above, below = u.new_zeros(shape), u.new_zeros(shape)
        for j in range(i + 1):
            s = (q[:, i] * k[:, j]).sum(-1, keepdim=True) / dims["n"] ** 0.5
            score = 1 + s + s * s / 2
            above, below = above + score * v[:, j], below + score
        ys.append(above / below)
    return torch.stack(ys, 1) if ys else u.new_zeros((batch, 0, *shape[1:])), {}
