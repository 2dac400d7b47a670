"""HGRN2: S_i = diag(f_i) S_{i-1} + (1 - f_i) v_iᵀ, y_i = n^(-1/2) S_iᵀ silu(q_i).

f = lb + (1 - lb) σ(W_f u).

Source: HGRN2 (Wang et al. 2025); as in the code.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import silu

DIMS = {"d": 6, "h": 2, "n": 4, "p": 3}
COMPLEX: frozenset[str] = frozenset()
CONSTRAINTS: dict[str, str] = {"lb": "unit"}


def shapes(dims: dict[str, int]) -> dict[str, dict[str, tuple[int, ...]]]:
    """Axes of every tensor; batch and time are left out."""
    d, h, n, p = (dims[axis] for axis in ("d", "h", "n", "p"))
    return {
        "inputs": {"u": (d,)},
        "params": {"W_Q": (h, n, d), "W_V": (h, p, d), "W_f": (h, n, d)},
        "buffers": {"lb": ()},
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
        q = silu(torch.einsum("hnd,bd->bhn", tensors["W_Q"], u[:, i]))
        v = torch.einsum("hpd,bd->bhp", tensors["W_V"], u[:, i])
        gate = torch.sigmoid(torch.einsum("hnd,bd->bhn", tensors["W_f"], u[:, i]))
        f = tensors["lb"] + (1 - tensors["lb"]) * gate
        matrix = f[..., :, None] * matrix + (1 - f)[..., :, None] * v[..., None, :]
        ys.append(n**-0.5 * (q[..., :, None] * matrix).sum(-2))
    return torch.stack(ys, 1) if ys else u.new_zeros((batch, 0, h, p)), {"S": matrix}
