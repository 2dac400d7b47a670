"""The block of Mamba-2: W_O RMSNorm(SSD(x, B, C) ⊙ silu(W_z u)), x, B and C behind convolutions.

Source: Dao and Gu 2024, Figure 6 (right), §7; one group of B and C for all heads, and a norm over
all channels of all heads behind the gate.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import conv1d, silu, softplus

SIZES = {"d": 6, "h": 2, "n": 3, "p": 5, "t": 4}


def _convolved(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    """silu of a causal convolution of each channel, `[B, L, channels]`."""
    taps = w.shape[-1]
    kernel = w.flip(-1).reshape(-1, 1, taps)
    y = conv1d(x.mT, kernel, b.flatten(), padding=taps - 1, groups=len(kernel))
    return silu(y[..., : x.shape[1]].mT)


def forward(u: Tensor, p: dict[str, Tensor]) -> Tensor:
    """y `[B, L, d]` of u `[B, L, d]`, token by token."""
    h, c = p["W_x"].shape[:2]
    x = _convolved(u @ p["W_x"].flatten(0, 1).T, p["w_x"], p["b_x"]).unflatten(-1, (h, c))
    keys = _convolved(u @ p["W_B"].T, p["w_b"], p["b_b"])
    queries = _convolved(u @ p["W_C"].T, p["w_c"], p["b_c"])
    step = softplus(u @ p["w_Delta"].T + p["b_Delta"])
    state = u.new_zeros(len(u), h, keys.shape[-1], c)
    ys = []
    for i in range(u.shape[1]):
        decay = torch.exp(-step[:, i] * p["a"])
        update = torch.einsum("bn,bh,bhp->bhnp", keys[:, i], step[:, i], x[:, i])
        state = decay[..., None, None] * state + update
        ys.append(torch.einsum("bn,bhnp->bhp", queries[:, i], state) + p["D"][:, None] * x[:, i])
    gated = torch.stack(ys, 1).flatten(2) * silu(u @ p["W_z"].flatten(0, 1).T)
    normed = gated / torch.sqrt(gated.square().mean(-1, keepdim=True) + 1e-5)
    return (normed * p["gamma"].flatten()) @ p["W_O"].flatten(1).T
