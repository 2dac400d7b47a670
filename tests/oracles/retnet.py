"""RetNet without rotation: y_i = n^(-1/2) Σ_{j≤i} γ^(i-j) (q_i·k_j) v_j, one fixed γ per head.

Source: Wang et al. 2025 eq. 8; γ in (0, 1).
"""

from __future__ import annotations

import torch
from torch import Tensor

DIMS = {"d": 6, "h": 2, "n": 4, "p": 3}
COMPLEX: frozenset[str] = frozenset()
CONSTRAINTS = {"gamma": "unit"}


def shapes(dims: dict[str, int]) -> dict[str, dict[str, tuple[int, ...]]]:
    """Axes of every tensor; batch and time are left out."""
    d, h, n, p = (dims[axis] for axis in ("d", "h", "n", "p"))
    return {
        "inputs": {"u": (d,)},
        "params": {"W_Q": (h, n, d), "W_K": (h, n, d), "W_V": (h, p, d)},
        "buffers": {"gamma": (h,)},
        "states": {},
        "output": {"y": (h, p)},
        "recurrent": {"S": (h, n, p)},
    }


def forward(
    tensors: dict[str, Tensor], dims: dict[str, int], initial: dict[str, Tensor] | None = None
) -> tuple[Tensor, dict[str, Tensor]]:
    """The definition: for each i, a sum over j ≤ i discounted by γ^(i-j)."""
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
        y = u.new_zeros(shape)
        for j in range(i + 1):
            discount = tensors["gamma"] ** (i - j)
            y = y + discount[:, None] * (q[:, i] * k[:, j]).sum(-1, keepdim=True) * v[:, j]
        ys.append(dims["n"] ** -0.5 * y)
    return torch.stack(ys, 1) if ys else u.new_zeros((batch, 0, *shape[1:])), {}


def recurrent(
    tensors: dict[str, Tensor], dims: dict[str, int], initial: dict[str, Tensor] | None = None
) -> tuple[Tensor, dict[str, Tensor]]:
    """S_i = γ S_{i-1} + k_i v_iᵀ, y_i = n^(-1/2) S_iᵀ q_i."""
    u = tensors["u"]
    batch, length = u.shape[:2]
    h, n, p = dims["h"], dims["n"], dims["p"]
    matrix = (initial or {}).get("S", u.new_zeros((batch, h, n, p)))
    ys = []
    for i in range(length):
        q = torch.einsum("hnd,bd->bhn", tensors["W_Q"], u[:, i])
        k = torch.einsum("hnd,bd->bhn", tensors["W_K"], u[:, i])
        v = torch.einsum("hpd,bd->bhp", tensors["W_V"], u[:, i])
        matrix = tensors["gamma"][:, None, None] * matrix + k[..., :, None] * v[..., None, :]
        ys.append(n**-0.5 * (q[..., :, None] * matrix).sum(-2))
    return torch.stack(ys, 1) if ys else u.new_zeros((batch, 0, h, p)), {"S": matrix}
