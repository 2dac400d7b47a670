"""SSD (Mamba-2): S_i = e^(-Δ_i a) S_{i-1} + Δ_i b_i x_iᵀ, y_i = S_iᵀ c_i + D x_i.

Source: Sieber et al. 2024 §2, Rickenbach et al. 2025; published Mamba-2 code, sign of a as there.

Δ_i = softplus(w_Δ·u_i + b_Δ) is one number per head, a > 0; b and c are shared by all heads. The
short convolution, SiLU and output norm of the published block are not part of the mixer.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import softplus

DIMS = {"d": 6, "h": 2, "n": 4, "p": 3}
COMPLEX: frozenset[str] = frozenset()
CONSTRAINTS = {"a": "positive"}


def shapes(dims: dict[str, int]) -> dict[str, dict[str, tuple[int, ...]]]:
    """Axes of every tensor; batch and time are left out."""
    d, h, n, p = (dims[axis] for axis in ("d", "h", "n", "p"))
    maps = {"W_x": (h, p, d), "W_B": (n, d), "W_C": (n, d), "w_Delta": (h, d)}
    return {
        "inputs": {"u": (d,)},
        "params": {**maps, "b_Delta": (h,), "D": (h,), "a": (h,)},
        "buffers": {},
        "states": {"S": (h, n, p)},
        "output": {"y": (h, p)},
    }


def forward(
    tensors: dict[str, Tensor], dims: dict[str, int], initial: dict[str, Tensor] | None = None
) -> tuple[Tensor, dict[str, Tensor]]:
    """The recurrence, token by token."""
    u = tensors["u"]
    batch, length = u.shape[:2]
    h, n, p = dims["h"], dims["n"], dims["p"]
    matrix = (initial or {}).get("S", u.new_zeros((batch, h, n, p)))
    ys = []
    for i in range(length):
        x = torch.einsum("hpd,bd->bhp", tensors["W_x"], u[:, i])
        b, c = u[:, i] @ tensors["W_B"].T, u[:, i] @ tensors["W_C"].T
        step = softplus(u[:, i] @ tensors["w_Delta"].T + tensors["b_Delta"])
        decay = torch.exp(-step * tensors["a"])
        drive = b[:, None, :, None] * (step[..., None] * x)[:, :, None, :]
        matrix = decay[..., None, None] * matrix + drive
        read = (c[:, None, :, None] * matrix).sum(-2)
        ys.append(read + tensors["D"][:, None] * x)
    return torch.stack(ys, 1) if ys else u.new_zeros((batch, 0, h, p)), {"S": matrix}
