"""Normalised attention, sigmoid: y_i = Σ_{j≤i} (q_i·k_j) v_j / σ(w_η·u_i + b_η).

Source: Sieber et al. 2024 eq. 30; as printed.

No factor n^(-1/2). The paper has one row W_η without a bias; here one row and one bias per head.
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
    params = {"W_Q": (h, n, d), "W_K": (h, n, d), "W_V": (h, p, d), "w_eta": (h, d), "b_eta": (h,)}
    return {
        "inputs": {"u": (d,)},
        "params": params,
        "buffers": {},
        "states": {},
        "output": {"y": (h, p)},
        "recurrent": {"S": (h, n, p)},
    }


def forward(
    tensors: dict[str, Tensor], dims: dict[str, int], initial: dict[str, Tensor] | None = None
) -> tuple[Tensor, dict[str, Tensor]]:
    """The definition: for each i, a sum over j ≤ i divided by η_i."""
    if initial:
        raise ValueError("a sum over the past has no initial state")
    u = tensors["u"]
    batch, length = u.shape[:2]
    shape = (batch, dims["h"], dims["p"])
    q = torch.einsum("hnd,bld->blhn", tensors["W_Q"], u)
    k = torch.einsum("hnd,bld->blhn", tensors["W_K"], u)
    v = torch.einsum("hpd,bld->blhp", tensors["W_V"], u)
    eta = torch.sigmoid(torch.einsum("hd,bld->blh", tensors["w_eta"], u) + tensors["b_eta"])
    ys = []
    for i in range(length):
        above = u.new_zeros(shape)
        for j in range(i + 1):
            above = above + (q[:, i] * k[:, j]).sum(-1, keepdim=True) * v[:, j]
        ys.append(above / eta[:, i, :, None])
    return torch.stack(ys, 1) if ys else u.new_zeros((batch, 0, *shape[1:])), {}


def recurrent(
    tensors: dict[str, Tensor], dims: dict[str, int], initial: dict[str, Tensor] | None = None
) -> tuple[Tensor, dict[str, Tensor]]:
    """Λ = I with post-scaling: S_i = S_{i-1} + k_i v_iᵀ, y_i = S_iᵀ q_i / η_i."""
    u = tensors["u"]
    batch, length = u.shape[:2]
    h, n, p = dims["h"], dims["n"], dims["p"]
    matrix = (initial or {}).get("S", u.new_zeros((batch, h, n, p)))
    ys = []
    for i in range(length):
        q = torch.einsum("hnd,bd->bhn", tensors["W_Q"], u[:, i])
        k = torch.einsum("hnd,bd->bhn", tensors["W_K"], u[:, i])
        v = torch.einsum("hpd,bd->bhp", tensors["W_V"], u[:, i])
        eta = torch.sigmoid(torch.einsum("hd,bd->bh", tensors["w_eta"], u[:, i]) + tensors["b_eta"])
        matrix = matrix + k[..., :, None] * v[..., None, :]
        ys.append((q[..., :, None] * matrix).sum(-2) / eta[..., None])
    return torch.stack(ys, 1) if ys else u.new_zeros((batch, 0, h, p)), {"S": matrix}
