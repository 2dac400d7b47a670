"""RWKV-7: S_i = S_{i-1} (diag(w) - κᵀ (a ⊙ κ)) + vᵀ x, y_i = S_i q_iᵀ + (q_i·(bonus ⊙ x)) v_i.

Source: Peng et al. 2025, "RWKV-7 Goose", section 4, the time mixing without token shift, group norm
and gate. The state has values along its rows and keys along its columns, as the paper writes it.

w = exp(-e^(-1/2) σ(w_0 + W_2 tanh(W_1 u))), a = σ(a_0 + A_2 A_1 u), κ = k ⊙ ξ of unit length,
x = k ⊙ (1 + (a - 1) α).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

DIMS = {"d": 6, "h": 2, "n": 4, "p": 3, "r": 5}
COMPLEX: frozenset[str] = frozenset()
CONSTRAINTS: dict[str, str] = {}


def shapes(dims: dict[str, int]) -> dict[str, dict[str, tuple[int, ...]]]:
    """Axes of every tensor; batch and time are left out."""
    d, h, n, p, r = (dims[axis] for axis in ("d", "h", "n", "p", "r"))
    per_key = ("w_0", "a_0", "xi", "alpha", "bonus")
    return {
        "inputs": {"u": (d,)},
        "params": {
            "W_Q": (h, n, d),
            "W_K": (h, n, d),
            "W_V": (h, p, d),
            "W_1": (r, d),
            "W_2": (h, n, r),
            "A_1": (r, d),
            "A_2": (h, n, r),
            **{name: (h, n) for name in per_key},
        },
        "buffers": {},
        "states": {"S": (h, n, p)},
        "output": {"y": (h, p)},
    }


def forward(
    tensors: dict[str, Tensor], dims: dict[str, int], initial: dict[str, Tensor] | None = None
) -> tuple[Tensor, dict[str, Tensor]]:
    """The recurrence, token by token, head by head, with the transition as a full matrix."""
    t = tensors
    u = t["u"]
    batch, length = u.shape[:2]
    h, n, p = dims["h"], dims["n"], dims["p"]
    start = (initial or {}).get("S", u.new_zeros((batch, h, n, p)))
    heads = [start[:, head].transpose(1, 2) for head in range(h)]
    ys = []
    for i in range(length):
        outs = []
        for head in range(h):
            q, k, v = (u[:, i] @ t[name][head].T for name in ("W_Q", "W_K", "W_V"))
            low = torch.tanh(u[:, i] @ t["W_1"].T) @ t["W_2"][head].T
            w = torch.exp(-math.exp(-0.5) / (1 + torch.exp(-(t["w_0"][head] + low))))
            rate = u[:, i] @ t["A_1"].T @ t["A_2"][head].T
            a = 1 / (1 + torch.exp(-(t["a_0"][head] + rate)))
            kappa = k * t["xi"][head]
            kappa = kappa / (kappa * kappa).sum(-1, keepdim=True).sqrt()
            x = k * (1 + (a - 1) * t["alpha"][head])
            move = torch.diag_embed(w) - kappa[:, :, None] * (a * kappa)[:, None, :]
            heads[head] = heads[head] @ move + v[:, :, None] * x[:, None, :]
            read = (heads[head] @ q[:, :, None])[..., 0]
            outs.append(read + (q * t["bonus"][head] * x).sum(-1, keepdim=True) * v)
        ys.append(torch.stack(outs, 1))
    last = torch.stack([s.transpose(1, 2) for s in heads], 1)
    return torch.stack(ys, 1) if ys else u.new_zeros((batch, 0, h, p)), {"S": last}
