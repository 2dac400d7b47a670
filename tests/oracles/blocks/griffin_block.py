"""The recurrent block of Griffin: W_O (gelu(W_y u) ⊙ RG-LRU(conv(W_x u))), with biases.

Source: De et al. 2024, §2.3-2.4 with eq. 1-4, Figure 2; gates are block-diagonal maps, a block for
each head. Its GeLU is x Φ(x); a program of its authors approximates that by a tanh.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import gelu, softplus

SIZES = {"d": 6, "h": 2, "c": 3, "t": 4}


def forward(u: Tensor, p: dict[str, Tensor]) -> Tensor:
    """y `[B, L, d]` of u `[B, L, d]`, token by token."""
    z = torch.einsum("hcd,bld->blhc", p["W_x"], u) + p["b_1"]
    gate = torch.einsum("hcd,bld->blhc", p["W_y"], u) + p["b_2"]
    state = torch.zeros_like(z[:, 0])
    ys = []
    for i in range(u.shape[1]):
        x = p["b_w"]
        for r in range(min(p["w"].shape[-1], i + 1)):
            x = x + p["w"][..., r] * z[:, i - r]
        recurrence = torch.sigmoid(torch.einsum("hec,bhc->bhe", p["W_r"], x) + p["b_r"])
        entry = torch.sigmoid(torch.einsum("hec,bhc->bhe", p["W_i"], x) + p["b_i"])
        a = torch.exp(-8 * softplus(p["zeta"]) * recurrence)
        state = a * state + torch.sqrt(1 - a * a) * (entry * x)
        ys.append(gelu(gate[:, i]) * state)
    return torch.einsum("dhc,blhc->bld", p["W_O"], torch.stack(ys, 1)) + p["b_O"]
