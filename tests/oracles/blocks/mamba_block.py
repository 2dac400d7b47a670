"""The block of Mamba: W_O ((S6 of silu(conv(W_x u))) ⊙ silu(W_z u)).

Source: Gu and Dao 2023, Figure 3 and Algorithm 2; Δ is softplus of a map of rank r, A = -exp(a),
B is discretised by Euler's rule.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import conv1d, silu, softplus

SIZES = {"d": 6, "e": 5, "n": 3, "r": 2, "t": 4}


def forward(u: Tensor, p: dict[str, Tensor]) -> Tensor:
    """y `[B, L, d]` of u `[B, L, d]`, token by token."""
    taps = p["w"].shape[-1]
    z = (u @ p["W_x"].T).mT
    # The language's tap r weighs the value r tokens ago; conv1d's last one weighs the present.
    x = conv1d(z, p["w"].flip(-1)[:, None], p["b_x"], padding=taps - 1, groups=len(z[0]))
    x = silu(x[..., : u.shape[1]]).mT
    step = softplus(x @ p["W_1"].T @ p["W_Delta"].T + p["b_Delta"])
    b, c = x @ p["W_B"].T, x @ p["W_C"].T
    state = u.new_zeros(len(u), *p["a"].shape)
    ys = []
    for i in range(u.shape[1]):
        decay = torch.exp(-step[:, i, :, None] * torch.exp(p["a"]))
        state = decay * state + (step[:, i] * x[:, i])[..., None] * b[:, i, None, :]
        ys.append((state * c[:, i, None, :]).sum(-1) + p["D"] * x[:, i])
    return (torch.stack(ys, 1) * silu(u @ p["W_z"].T)) @ p["W_O"].T
