"""A layer of gated linear attention with the names and shapes of flash-linear-attention.

Source: Yang et al. 2023, §4.4, and `fla/layers/gla.py` without short convolutions: decays are
logsigmoid(W_2 W_1 x + b) / 16, a head's output is normed and gated by silu. Written by hand, as the
layers of that package run on GPUs alone.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid, silu


class GatedLinearAttention(nn.Module):
    """From `[B, L, d]` to `[B, L, d]`, token by token."""

    def __init__(self, d: int, h: int, n: int, p: int, r: int) -> None:
        super().__init__()
        self.h = h
        self.q_proj = nn.Linear(d, h * n, bias=False)
        self.k_proj = nn.Linear(d, h * n, bias=False)
        self.v_proj = nn.Linear(d, h * p, bias=False)
        self.g_proj = nn.Linear(d, h * p, bias=False)
        self.gk_proj = nn.Sequential(nn.Linear(d, r, bias=False), nn.Linear(r, h * n))
        self.g_norm_swish_gate = nn.RMSNorm(p, eps=1e-5)
        self.o_proj = nn.Linear(h * p, d, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        maps = (self.q_proj, self.k_proj, self.v_proj, self.gk_proj)
        q, k, v, g = (m(x).unflatten(-1, (self.h, -1)) for m in maps)
        decay = torch.exp(logsigmoid(g) / 16)
        state = x.new_zeros(len(x), self.h, k.shape[-1], v.shape[-1])
        outputs = []
        for i in range(x.shape[1]):
            state = decay[:, i, ..., None] * state + k[:, i, ..., None] * v[:, i, :, None]
            outputs.append((q[:, i, :, None] @ state)[:, :, 0] * q.shape[-1] ** -0.5)
        normed = self.g_norm_swish_gate(torch.stack(outputs, 1)).flatten(-2)
        return self.o_proj(normed * silu(self.g_proj(x)))
