"""RWKV-5: y_i = q_iᵀ (S_{i-1} + diag(bonus) k_i v_iᵀ), S_i = diag(w) S_{i-1} + k_i v_iᵀ.

Source: Anonymous 2025 eq. 3; w = exp(-exp(w_0)), not e^w.

The axis r is inherited from rwkv6; no tensor has it. Group norm and gate of the block are not part
of the mixer.
"""

from __future__ import annotations

import torch
from torch import Tensor

DIMS = {"d": 6, "h": 2, "n": 4, "p": 3, "r": 5}
COMPLEX: frozenset[str] = frozenset()
CONSTRAINTS: dict[str, str] = {}


def shapes(dims: dict[str, int]) -> dict[str, dict[str, tuple[int, ...]]]:
    """Axes of every tensor; batch and time are left out."""
    d, h, n, p = (dims[axis] for axis in ("d", "h", "n", "p"))
    return {
        "inputs": {"u": (d,)},
        "params": {
            "W_Q": (h, n, d),
            "W_K": (h, n, d),
            "W_V": (h, p, d),
            "w_0": (h, n),
            "bonus": (h, n),
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
        decay = torch.exp(-torch.exp(tensors["w_0"]))
        direct = (tensors["bonus"] * k)[..., :, None] * v[..., None, :]
        ys.append((q[..., :, None] * (matrix + direct)).sum(-2))
        matrix = decay[..., None] * matrix + k[..., :, None] * v[..., None, :]
    return torch.stack(ys, 1) if ys else u.new_zeros((batch, 0, h, p)), {"S": matrix}
