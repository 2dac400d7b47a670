"""Time mixing of RWKV-7 in a model's first layer: o = W_O (g ⊙ (GroupNorm(S r) + bonus)).

Source: Peng et al. 2025, "RWKV-7 Goose", §4. Each of r, k, v, d, a, g reads u + μ ⊙ (u_{i-1} - u);
w = exp(-e^(-1/2) σ(w_0 + W_2 tanh(W_1 x))), a = σ(a_0 + A_2 A_1 x), g = G_2 σ(G_1 x); later layers
also mix v with that of the first, which is no part of one layer. The norm is over each head, with
ε = 64e-5 as in the published code. S has values along its rows and keys along its columns.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

SIZES = {"d": 6, "h": 2, "n": 4, "p": 3, "r": 5, "m": 7}


def forward(u: Tensor, p: dict[str, Tensor]) -> Tensor:
    """y `[B, L, d]` of u `[B, L, d]`, token by token, head by head."""
    before = torch.cat((torch.zeros_like(u[:, :1]), u[:, :-1]), 1)
    x = {name: u + p[f"mu_{name}"] * (before - u) for name in "rkvwag"}
    heads, values, keys = len(p["W_V"]), p["W_V"].shape[1], p["W_K"].shape[1]
    states = [u.new_zeros(len(u), values, keys) for _ in range(heads)]
    ys = []
    for i in range(u.shape[1]):
        g = torch.sigmoid(x["g"][:, i] @ p["G_1"].T)
        y = torch.zeros_like(u[:, i])
        for h in range(heads):
            r, k, v = (
                x[n][:, i] @ p[W][h].T for n, W in (("r", "W_Q"), ("k", "W_K"), ("v", "W_V"))
            )
            d = p["w_0"][h] + torch.tanh(x["w"][:, i] @ p["W_1"].T) @ p["W_2"][h].T
            w = torch.exp(-math.exp(-0.5) * torch.sigmoid(d))
            a = torch.sigmoid(p["a_0"][h] + x["a"][:, i] @ p["A_1"].T @ p["A_2"][h].T)
            kappa = k * p["xi"][h]
            kappa = kappa / kappa.square().sum(-1, keepdim=True).sqrt()
            replaced = k * (1 + (a - 1) * p["alpha"][h])
            move = torch.diag_embed(w) - kappa[:, :, None] * (a * kappa)[:, None, :]
            states[h] = states[h] @ move + v[:, :, None] * replaced[:, None, :]
            o = (states[h] @ r[:, :, None])[..., 0]
            o = (o - o.mean(-1, keepdim=True)) / (o.var(-1, False, keepdim=True) + 64e-5).sqrt()
            o = p["gamma"][h] * o + p["b_gamma"][h]
            o = o + (r * p["bonus"][h] * replaced).sum(-1, keepdim=True) * v
            y = y + (o * (g @ p["G_2"][h].T)) @ p["W_O"][:, h].T
        ys.append(y)
    return torch.stack(ys, 1)
