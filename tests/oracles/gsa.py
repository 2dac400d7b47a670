"""Gated slot attention: two memories of m slots, the first read by a query, the second by softmax.

K_i = diag(α_i) K_{i-1} + (1 - α_i) k_iᵀ, V_i = diag(α_i) V_{i-1} + (1 - α_i) v_iᵀ,
y_i = V_iᵀ softmax(K_i q_i).

Source: Zhang et al. 2024, "Gated Slot Attention for Efficient Linear-Time Sequence Modeling",
section 3; gates and feature maps as in the published code: α = σ(W_f u)^(1/8), SiLU on q, k and v,
no scale. The state K has its keys in front of its slots.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, silu

DIMS = {"d": 6, "h": 2, "n": 4, "p": 3, "m": 5}
COMPLEX: frozenset[str] = frozenset()
CONSTRAINTS: dict[str, str] = {}


def shapes(dims: dict[str, int]) -> dict[str, dict[str, tuple[int, ...]]]:
    """Axes of every tensor; batch and time are left out."""
    d, h, n, p, m = (dims[axis] for axis in ("d", "h", "n", "p", "m"))
    return {
        "inputs": {"u": (d,)},
        "params": {"W_Q": (h, n, d), "W_K": (h, n, d), "W_V": (h, p, d), "W_f": (h, m, d)},
        "buffers": {},
        "states": {"K": (h, n, m), "V": (h, p, m)},
        "output": {"y": (h, p)},
    }


def forward(
    tensors: dict[str, Tensor], dims: dict[str, int], initial: dict[str, Tensor] | None = None
) -> tuple[Tensor, dict[str, Tensor]]:
    """The recurrence, token by token."""
    t = tensors
    u = t["u"]
    batch, length = u.shape[:2]
    h, n, p, m = dims["h"], dims["n"], dims["p"], dims["m"]
    start = initial or {}
    keys = start.get("K", u.new_zeros((batch, h, n, m))).mT
    values = start.get("V", u.new_zeros((batch, h, p, m))).mT
    ys = []
    for i in range(length):
        q, k, v = (
            silu(torch.einsum("had,bd->bha", t[name], u[:, i])) for name in ("W_Q", "W_K", "W_V")
        )
        gate = torch.exp(logsigmoid(torch.einsum("hmd,bd->bhm", t["W_f"], u[:, i])) / 8)[..., None]
        keys = gate * keys + (1 - gate) * k[..., None, :]
        values = gate * values + (1 - gate) * v[..., None, :]
        slots = torch.softmax((keys @ q[..., None])[..., 0], -1)
        ys.append((values.mT @ slots[..., None])[..., 0])
    y = torch.stack(ys, 1) if ys else u.new_zeros((batch, 0, h, p))
    return y, {"K": keys.mT, "V": values.mT}
