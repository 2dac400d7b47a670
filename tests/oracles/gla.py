"""GLA: S_i = diag(α_i) S_{i-1} + k_i v_iᵀ, y_i = n^(-1/2) S_iᵀ q_i, α_i = σ(W_2 W_1 u + b)^(1/16).

Source: Wang et al. 2025 eq. 6; gate as in the code.
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
            "W_1": (r, d),
            "W_2": (h, n, r),
            "b_alpha": (h, n),
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
        logit = torch.einsum("hnr,rd,bd->bhn", tensors["W_2"], tensors["W_1"], u[:, i])
        decay = torch.sigmoid(logit + tensors["b_alpha"]) ** (1 / 16)
        matrix = decay[..., None] * matrix + k[..., :, None] * v[..., None, :]
        ys.append(n**-0.5 * (q[..., :, None] * matrix).sum(-2))
    return torch.stack(ys, 1) if ys else u.new_zeros((batch, 0, h, p)), {"S": matrix}
