"""mLSTM: y_i = σ(W_o u_i) (C_iᵀ s_i) / max(|z_i·s_i|, 1).

C_i = f_i C_{i-1} + g_i k_i v_iᵀ, z_i = f_i z_{i-1} + g_i k_i.

Source: xLSTM (Sieber et al. 2024 fn. 4); gates read u only.

f = σ(w_f·u + b_f), g = exp(w_i·u + b_i) per head, s = n^(-1/2) q.
"""

from __future__ import annotations

import torch
from torch import Tensor

DIMS = {"d": 6, "h": 2, "n": 4, "p": 3}
COMPLEX: frozenset[str] = frozenset()
CONSTRAINTS: dict[str, str] = {}


def shapes(dims: dict[str, int]) -> dict[str, dict[str, tuple[int, ...]]]:
    """Axes of every tensor; batch and time are left out."""
    d, h, n, p = (dims[axis] for axis in ("d", "h", "n", "p"))
    gates = {"w_i": (h, d), "w_f": (h, d), "b_i": (h,), "b_f": (h,), "W_o": (h, p, d)}
    return {
        "inputs": {"u": (d,)},
        "params": {"W_Q": (h, n, d), "W_K": (h, n, d), "W_V": (h, p, d), **gates},
        "buffers": {},
        "states": {"C": (h, n, p), "z": (h, n)},
        "output": {"y": (h, p)},
    }


def forward(
    tensors: dict[str, Tensor], dims: dict[str, int], initial: dict[str, Tensor] | None = None
) -> tuple[Tensor, dict[str, Tensor]]:
    """The two recurrences and their guarded quotient, token by token."""
    u = tensors["u"]
    batch, length = u.shape[:2]
    h, n, p = dims["h"], dims["n"], dims["p"]
    given = initial or {}
    matrix = given.get("C", u.new_zeros((batch, h, n, p)))
    total = given.get("z", u.new_zeros((batch, h, n)))
    ys = []
    for i in range(length):
        q = torch.einsum("hnd,bd->bhn", tensors["W_Q"], u[:, i])
        k = torch.einsum("hnd,bd->bhn", tensors["W_K"], u[:, i])
        v = torch.einsum("hpd,bd->bhp", tensors["W_V"], u[:, i])
        f = torch.sigmoid(u[:, i] @ tensors["w_f"].T + tensors["b_f"])[..., None]
        g = torch.exp(u[:, i] @ tensors["w_i"].T + tensors["b_i"])[..., None]
        matrix = f[..., None] * matrix + (g * k)[..., :, None] * v[..., None, :]
        total = f * total + g * k
        s = q / n**0.5
        below = (s * total).sum(-1, keepdim=True).abs().clamp(min=1)
        gate = torch.sigmoid(torch.einsum("hpd,bd->bhp", tensors["W_o"], u[:, i]))
        ys.append(gate * (s[..., :, None] * matrix).sum(-2) / below)
    y = torch.stack(ys, 1) if ys else u.new_zeros((batch, 0, h, p))
    return y, {"C": matrix, "z": total}
