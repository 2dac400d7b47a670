"""The block of Gated DeltaNet with the small numbers under roots that Qwen3-Next has.

Source: Yang, Kautz, Hatamizadeh 2024, eq. 10 and Figure 1; S_i = S_{i-1} α_i (I - β_i k_i k_iᵀ)
+ β_i v_i k_iᵀ, where q, k are x / sqrt(|x|² + 10⁻⁶), and the norm of a head adds 10⁻⁶ to the mean.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import conv1d, pad, silu, softplus

SIZES = {"d": 6, "h": 2, "n": 4, "p": 3, "t": 4}
SMALL = 1e-6


def _convolved(u: Tensor, matrix: Tensor, taps: Tensor) -> Tensor:
    """silu(conv(W u)) `[B, L, h, a]`; the first tap is that of the present token."""
    h, a, t = taps.shape
    x = (u @ matrix.reshape(h * a, -1).T).mT
    kernel = taps.flip(-1).reshape(h * a, 1, t)
    return silu(conv1d(pad(x, (t - 1, 0)), kernel, groups=h * a)).mT.unflatten(-1, (h, a))


def forward(u: Tensor, p: dict[str, Tensor]) -> Tensor:
    """y `[B, L, d]` of u `[B, L, d]`, token by token."""
    q, k, v = (_convolved(u, p[f"W_{x.upper()}"], p[f"w_{x}"]) for x in "qkv")
    q, k = (x * torch.rsqrt(x.square().sum(-1, keepdim=True) + SMALL) for x in (q, k))
    beta = torch.sigmoid(u @ p["w_beta"].T)
    alpha = torch.exp(-p["a"] * softplus(u @ p["w_alpha"].T + p["b_alpha"]))
    state = u.new_zeros(len(u), v.shape[2], v.shape[3], k.shape[3])
    outputs = []
    for i in range(u.shape[1]):
        state = alpha[:, i, :, None, None] * state
        missed = v[:, i] - torch.einsum("bhpn,bhn->bhp", state, k[:, i])
        state = state + torch.einsum("bhp,bhn,bh->bhpn", missed, k[:, i], beta[:, i])
        outputs.append(torch.einsum("bhpn,bhn->bhp", state, q[:, i]) * k.shape[3] ** -0.5)
    o = torch.stack(outputs, 1)
    o = p["gamma"] * o * torch.rsqrt(o.square().mean(-1, keepdim=True) + SMALL)
    gate = silu(torch.einsum("hpd,bld->blhp", p["W_G"], u))
    return torch.einsum("dhp,blhp->bld", p["W_O"], o * gate)
