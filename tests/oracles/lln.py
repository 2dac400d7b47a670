"""LLN attention: y_i = Σ_{j≤i} (e^(α q_i)·e^(β k_j)) v_j / the same without v_j, α = β = 1.

Source: Anonymous 2025 eq. 8-11; α, β constants, so causal.
"""

from __future__ import annotations

import torch
from torch import Tensor

DIMS = {"d": 6, "h": 2, "n": 4, "p": 3}
COMPLEX: frozenset[str] = frozenset()
CONSTRAINTS: dict[str, str] = {}


def _feature(x: Tensor, temperature: float) -> Tensor:
    """Elementwise exponential feature map."""
    return torch.exp(temperature * x)


def shapes(dims: dict[str, int]) -> dict[str, dict[str, tuple[int, ...]]]:
    """Axes of every tensor; batch and time are left out."""
    d, h, n, p = (dims[axis] for axis in ("d", "h", "n", "p"))
    return {
        "inputs": {"u": (d,)},
        "params": {"W_Q": (h, n, d), "W_K": (h, n, d), "W_V": (h, p, d)},
        "buffers": {},
        "states": {},
        "output": {"y": (h, p)},
        "recurrent": {"S": (h, n, p), "z": (h, n)},
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
            score = (_feature(q[:, i], 1.0) * _feature(k[:, j], 1.0)).sum(-1, keepdim=True)
            above, below = above + score * v[:, j], below + score
        ys.append(above / below)
    return torch.stack(ys, 1) if ys else u.new_zeros((batch, 0, *shape[1:])), {}


def recurrent(
    tensors: dict[str, Tensor], dims: dict[str, int], initial: dict[str, Tensor] | None = None
) -> tuple[Tensor, dict[str, Tensor]]:
    """Λ = I: S_i = S_{i-1} + φ(k_i) v_iᵀ, z_i = z_{i-1} + φ(k_i), y = S_iᵀ φ(q_i) / z_i·φ(q_i)."""
    u = tensors["u"]
    batch, length = u.shape[:2]
    h, n, p = dims["h"], dims["n"], dims["p"]
    given = initial or {}
    matrix = given.get("S", u.new_zeros((batch, h, n, p)))
    total = given.get("z", u.new_zeros((batch, h, n)))
    ys = []
    for i in range(length):
        q = torch.einsum("hnd,bd->bhn", tensors["W_Q"], u[:, i])
        k = torch.einsum("hnd,bd->bhn", tensors["W_K"], u[:, i])
        v = torch.einsum("hpd,bd->bhp", tensors["W_V"], u[:, i])
        phi_q, phi_k = _feature(q, 1.0), _feature(k, 1.0)
        matrix = matrix + phi_k[..., :, None] * v[..., None, :]
        total = total + phi_k
        below = (phi_q * total).sum(-1, keepdim=True)
        ys.append((phi_q[..., :, None] * matrix).sum(-2) / below)
    y = torch.stack(ys, 1) if ys else u.new_zeros((batch, 0, h, p))
    return y, {"S": matrix, "z": total}
