"""The layer of KDA: W_O (sigmoid(G_2 G_1 u) ⊙ RMSNorm(KDA of each head)).

Source: Kimi Team 2025, "Kimi Linear", eq. 1 and §4; q, k and v behind convolutions and SiLU, q and
k of length 1, S_i = (I - β_i k_i k_iᵀ) diag(α_i) S_{i-1} + β_i k_i v_iᵀ, and the decay that the
published code has, α = exp(-a softplus(W_2 W_1 u + b)).
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import silu, softplus

SIZES = {"d": 6, "h": 2, "n": 4, "p": 3, "r": 5, "t": 4}


def _convolved(x: Tensor, w: Tensor) -> Tensor:
    """silu(Σ_r w_r x_{i-r}) of `[B, L, h, a]`, w `[h, a, t]`."""
    rows = []
    for i in range(x.shape[1]):
        earlier = [w[..., r] * x[:, i - r] for r in range(w.shape[-1]) if r <= i]
        rows.append(silu(torch.stack(earlier).sum(0)))
    return torch.stack(rows, 1)


def forward(u: Tensor, p: dict[str, Tensor]) -> Tensor:
    """y `[B, L, d]` of u `[B, L, d]`, token by token."""
    q, k, v = (
        _convolved(torch.einsum("had,bld->blha", p[f"W_{name.upper()}"], u), p[f"w_{name}"])
        for name in "qkv"
    )
    q, k = (x / x.square().sum(-1, keepdim=True).sqrt() for x in (q, k))
    beta = torch.sigmoid(u @ p["w_beta"].T)
    logit = torch.einsum("hnr,blr->blhn", p["W_2"], u @ p["W_1"].T) + p["b_alpha"]
    alpha = torch.exp(-p["a"][:, None] * softplus(logit))
    keys, values = k.shape[3], v.shape[3]
    state = u.new_zeros(len(u), v.shape[2], keys, values)
    os = []
    for i in range(u.shape[1]):
        at, rate = k[:, i], beta[:, i, :, None, None]
        erasing = torch.eye(keys, dtype=u.dtype) - rate * at[..., None] * at[..., None, :]
        state = erasing @ torch.diag_embed(alpha[:, i]) @ state
        state = state + rate * at[..., None] * v[:, i, ..., None, :]
        os.append((q[:, i, ..., None, :] @ state)[..., 0, :] * keys**-0.5)
    o = torch.stack(os, 1)
    normed = p["gamma"] * o / torch.sqrt(o.square().mean(-1, keepdim=True) + 1e-5)
    gate = torch.sigmoid(torch.einsum("hpr,blr->blhp", p["G_2"], u @ p["G_1"].T))
    return torch.einsum("dhp,blhp->bld", p["W_O"], gate * normed)
