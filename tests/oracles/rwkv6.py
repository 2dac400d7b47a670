"""RWKV-6: y_i = q_iᵀ (S_{i-1} + diag(bonus) k_i v_iᵀ), S_i = diag(w_i) S_{i-1} + k_i v_iᵀ.

Source: Anonymous 2025 eq. 3; w_i a product over time, diag(u).

w_i = exp(-exp(w_0 + W_2 tanh(W_1 u_i))). The group norm and the gate of the published block are not
part of it.
"""

from __future__ import annotations

import torch
from torch import Tensor

DIMS = {"d": 6, "h": 2, "n": 4, "p": 3, "r": 5}
COMPLEX: frozenset[str] = frozenset()
CONSTRAINTS: dict[str, str] = {}


def shapes(dims: dict[str, int]) -> dict[str, dict[str, tuple[int, ...]]]:
    """Axes of every tensor; batch and time are left out."""
    d, h, n, p, r = (dims[axis] for axis in ("d", "h", "n", "p", "r"))
    return {
        "inputs": {"u": (d,)},
        "params": {
            "W_Q": (h, n, d),
            "W_K": (h, n, d),
            "W_V": (h, p, d),
            "w_0": (h, n),
            "bonus": (h, n),
            "W_1": (r, d),
            "W_2": (h, n, r),
        },
        "buffers": {},
        "states": {"S": (h, n, p)},
        "output": {"y": (h, p)},
    }


def forward(
    tensors: dict[str, Tensor], dims: dict[str, int], initial: dict[str, Tensor] | None = None
) -> tuple[Tensor, dict[str, Tensor]]:
    """The recurrence, token by token."""
    u = tensors["u"]
    batch, length = u.shape[:2]
    h, n, p = dims["h"], dims["n"], dims["p"]
    matrix = (initial or {}).get("S", u.new_zeros((batch, h, n, p)))
    ys = []
    for i in range(length):
        q = torch.einsum("hnd,bd->bhn", tensors["W_Q"], u[:, i])
        k = torch.einsum("hnd,bd->bhn", tensors["W_K"], u[:, i])
        v = torch.einsum("hpd,bd->bhp", tensors["W_V"], u[:, i])
        inner = torch.tanh(u[:, i] @ tensors["W_1"].T)
        rate = tensors["w_0"] + torch.einsum("hnr,br->bhn", tensors["W_2"], inner)
        decay = torch.exp(-torch.exp(rate))
        direct = (tensors["bonus"] * k)[..., :, None] * v[..., None, :]
        ys.append((q[..., :, None] * (matrix + direct)).sum(-2))
        matrix = decay[..., None] * matrix + k[..., :, None] * v[..., None, :]
    return torch.stack(ys, 1) if ys else u.new_zeros((batch, 0, h, p)), {"S": matrix}
