"""Performer: linear attention with φ(x) = r^(-1/2) e^(-‖x‖²/2) e^(Ωx) of x = q/n^(1/4), k/n^(1/4).

Source: FAVOR+ (Sieber et al. 2024 §3.2); rows of Ω as given, not of unit length.

Ω is a buffer, [r, n]; its rows are meant to be orthogonal with lengths distributed as χ_n.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

DIMS = {"d": 6, "h": 2, "n": 4, "p": 3, "r": 5}
COMPLEX: frozenset[str] = frozenset()
CONSTRAINTS: dict[str, str] = {}


def _feature(x: Tensor, omega: Tensor) -> Tensor:
    """Positive random features of e^(x·x'), [..., n] -> [..., r]."""
    r, n = omega.shape
    x = x / math.sqrt(math.sqrt(n))
    return torch.exp(x @ omega.T - (x * x).sum(-1, keepdim=True) / 2) / math.sqrt(r)


def shapes(dims: dict[str, int]) -> dict[str, dict[str, tuple[int, ...]]]:
    """Axes of every tensor; batch and time are left out."""
    d, h, n, p, r = (dims[axis] for axis in ("d", "h", "n", "p", "r"))
    return {
        "inputs": {"u": (d,)},
        "params": {"W_Q": (h, n, d), "W_K": (h, n, d), "W_V": (h, p, d)},
        "buffers": {"Omega": (r, n)},
        "states": {},
        "output": {"y": (h, p)},
        "recurrent": {"S": (h, r, p), "z": (h, r)},
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
            score = (_feature(q[:, i], tensors["Omega"]) * _feature(k[:, j], tensors["Omega"])).sum(
                -1, keepdim=True
            )
            above, below = above + score * v[:, j], below + score
        ys.append(above / below)
    return torch.stack(ys, 1) if ys else u.new_zeros((batch, 0, *shape[1:])), {}


def recurrent(
    tensors: dict[str, Tensor], dims: dict[str, int], initial: dict[str, Tensor] | None = None
) -> tuple[Tensor, dict[str, Tensor]]:
    """Λ = I: S_i = S_{i-1} + φ(k_i) v_iᵀ, z_i = z_{i-1} + φ(k_i), y = S_iᵀ φ(q_i) / z_i·φ(q_i)."""
    u = tensors["u"]
    batch, length = u.shape[:2]
    h, r, p = dims["h"], dims["r"], dims["p"]
    given = initial or {}
    matrix = given.get("S", u.new_zeros((batch, h, r, p)))
    total = given.get("z", u.new_zeros((batch, h, r)))
    ys = []
    for i in range(length):
        q = torch.einsum("hnd,bd->bhn", tensors["W_Q"], u[:, i])
        k = torch.einsum("hnd,bd->bhn", tensors["W_K"], u[:, i])
        v = torch.einsum("hpd,bd->bhp", tensors["W_V"], u[:, i])
        phi_q, phi_k = _feature(q, tensors["Omega"]), _feature(k, tensors["Omega"])
        matrix = matrix + phi_k[..., :, None] * v[..., None, :]
        total = total + phi_k
        below = (phi_q * total).sum(-1, keepdim=True)
        ys.append((phi_q[..., :, None] * matrix).sum(-2) / below)
    y = torch.stack(ys, 1) if ys else u.new_zeros((batch, 0, h, p))
    return y, {"S": matrix, "z": total}
