"""The layer of gated linear attention: W_O (silu(W_R u + b_R) ⊙ RMSNorm(GLA of each head)).

Source: Yang et al. 2023, §4.4; the norm as its authors' program has it, without a mean.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import silu

SIZES = {"d": 6, "h": 2, "n": 4, "p": 3, "r": 5}


def forward(u: Tensor, p: dict[str, Tensor]) -> Tensor:
    """y `[B, L, d]` of u `[B, L, d]`, token by token."""
    q, k, v = (torch.einsum("had,bld->blha", p[name], u) for name in ("W_Q", "W_K", "W_V"))
    low = torch.einsum("hnr,blr->blhn", p["W_2"], u @ p["W_1"].T)
    decay = torch.sigmoid(low + p["b_alpha"]) ** (1 / 16)
    state = u.new_zeros(len(u), *k.shape[2:], v.shape[-1])
    os = []
    for i in range(u.shape[1]):
        state = decay[:, i, ..., None] * state + k[:, i, ..., None] * v[:, i, :, None, :]
        os.append((q[:, i, ..., None] * state).sum(-2) * k.shape[-1] ** -0.5)
    o = torch.stack(os, 1)
    normed = p["gamma"] * o / torch.sqrt(o.square().mean(-1, keepdim=True) + 1e-5)
    gate = silu(torch.einsum("hpd,bld->blhp", p["W_R"], u) + p["b_R"])
    return torch.einsum("dhp,blhp->bld", p["W_O"], gate * normed)
