"""The recurrent block of RecurrentGemma: Griffin's, whose first token is not scaled.

Source: Botev et al. 2024 and the program of its authors: at the start of a sequence h = i x, later
h = a h + sqrt(1 - a²) i x (De et al. 2024, eq. 4); GeLU is approximated by a tanh.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import conv1d, gelu, pad, softplus

SIZES = {"d": 6, "h": 2, "c": 3, "t": 4}


def forward(u: Tensor, p: dict[str, Tensor]) -> Tensor:
    """y `[B, L, d]` of u `[B, L, d]`, token by token."""
    h, c, t = p["w"].shape
    z = u @ p["W_x"].reshape(h * c, -1).T + p["b_1"].reshape(-1)
    taps = p["w"].flip(-1).reshape(h * c, 1, t)
    x = conv1d(pad(z.mT, (t - 1, 0)), taps, p["b_w"].reshape(-1), groups=h * c).mT
    heads = x.unflatten(-1, (h, c))
    r = torch.sigmoid(torch.einsum("hec,blhc->blhe", p["W_r"], heads) + p["b_r"])
    entry = torch.sigmoid(torch.einsum("hec,blhc->blhe", p["W_i"], heads) + p["b_i"])
    log_a = -8 * softplus(p["zeta"]) * r
    state = entry[:, 0] * heads[:, 0]
    states = [state]
    for i in range(1, u.shape[1]):
        scale = torch.sqrt(-torch.expm1(2 * log_a[:, i]))
        state = torch.exp(log_a[:, i]) * state + scale * entry[:, i] * heads[:, i]
        states.append(state)
    gate = gelu(u @ p["W_y"].reshape(h * c, -1).T + p["b_2"].reshape(-1), approximate="tanh")
    mixed = gate * torch.stack(states, 1).flatten(-2)
    return mixed @ p["W_O"].reshape(-1, h * c).T + p["b_O"]
