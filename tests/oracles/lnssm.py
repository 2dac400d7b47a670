"""LNSSM: y_i = silu(W_g u_i) (S_iᵀ e^(q_i)) / (z_i·e^(q_i)).

S_i = A S_{i-1} + e^(k_i) v_iᵀ, z_i = A z_{i-1} + e^(k_i).

Source: Anonymous 2025 eq. 12, 15; A = exp(-exp(ω)).

Eq. 15, not the first form of eq. 14 (one power of A apart). QK-norm, token shift of k and v and the
output map of the published block are not part of the mixer.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import silu

DIMS = {"d": 6, "h": 2, "n": 4, "p": 3}
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
            "omega": (h, n),
            "W_g": (h, p, d),
        },
        "buffers": {},
        "states": {"S": (h, n, p), "z": (h, n)},
        "output": {"y": (h, p)},
    }


def forward(
    tensors: dict[str, Tensor], dims: dict[str, int], initial: dict[str, Tensor] | None = None
) -> tuple[Tensor, dict[str, Tensor]]:
    """The two recurrences and their quotient, token by token."""
    u = tensors["u"]
    batch, length = u.shape[:2]
    h, n, p = dims["h"], dims["n"], dims["p"]
    given = initial or {}
    matrix = given.get("S", u.new_zeros((batch, h, n, p)))
    total = given.get("z", u.new_zeros((batch, h, n)))
    decay = torch.exp(-torch.exp(tensors["omega"]))
    ys = []
    for i in range(length):
        q = torch.einsum("hnd,bd->bhn", tensors["W_Q"], u[:, i])
        k = torch.einsum("hnd,bd->bhn", tensors["W_K"], u[:, i])
        v = torch.einsum("hpd,bd->bhp", tensors["W_V"], u[:, i])
        gate = silu(torch.einsum("hpd,bd->bhp", tensors["W_g"], u[:, i]))
        matrix = decay[..., None] * matrix + torch.exp(k)[..., :, None] * v[..., None, :]
        total = decay * total + torch.exp(k)
        below = (torch.exp(q) * total).sum(-1, keepdim=True)
        ys.append(gate * (torch.exp(q)[..., :, None] * matrix).sum(-2) / below)
    y = torch.stack(ys, 1) if ys else u.new_zeros((batch, 0, h, p))
    return y, {"S": matrix, "z": total}
