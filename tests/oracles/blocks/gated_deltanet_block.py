"""The block of Gated DeltaNet: W_O (RMSNorm(delta rule of each head) ⊙ silu(W_G u)).

Source: Yang, Kautz, Hatamizadeh 2024, eq. 10 and Figure 1; q, k and v behind convolutions and SiLU,
q and k of length 1, S_i = S_{i-1} α_i (I - β_i k_i k_iᵀ) + β_i v_i k_iᵀ.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import silu, softplus

SIZES = {"d": 6, "h": 2, "n": 4, "p": 3, "t": 4}


def _convolved(x: Tensor, w: Tensor) -> Tensor:
    """silu(Σ_r w_r x_{i-r}) of `[B, L, h, a]`."""
    total = torch.zeros_like(x)
    for r in range(min(w.shape[-1], x.shape[1])):
        total = total + w[..., r] * torch.cat(
            (torch.zeros_like(x[:, :r]), x[:, : x.shape[1] - r]), 1
        )
    return silu(total)


def forward(u: Tensor, p: dict[str, Tensor]) -> Tensor:
    """y `[B, L, d]` of u `[B, L, d]`, token by token."""
    q, k, v = (
        _convolved(torch.einsum("had,bld->blha", p[f"W_{name.upper()}"], u), p[f"w_{name}"])
        for name in "qkv"
    )
    q, k = (x / x.square().sum(-1, keepdim=True).sqrt() for x in (q, k))
    beta = torch.sigmoid(u @ p["w_beta"].T)
    alpha = torch.exp(-p["a"] * softplus(u @ p["w_alpha"].T + p["b_alpha"]))
    state = u.new_zeros(len(u), v.shape[2], v.shape[3], k.shape[3])
    os = []
    for i in range(u.shape[1]):
        at, rate = k[:, i], beta[:, i, :, None, None]
        erased = torch.eye(at.shape[-1], dtype=u.dtype) - rate * at[..., None] * at[..., None, :]
        state = alpha[:, i, :, None, None] * state @ erased
        state = state + rate * v[:, i, ..., None] * at[..., None, :]
        os.append((state @ q[:, i, ..., None])[..., 0] * at.shape[-1] ** -0.5)
    o = torch.stack(os, 1)
    normed = p["gamma"] * o / torch.sqrt(o.square().mean(-1, keepdim=True) + 1e-5)
    gate = silu(torch.einsum("hpd,bld->blhp", p["W_G"], u))
    return torch.einsum("dhp,blhp->bld", p["W_O"], gate * normed)
