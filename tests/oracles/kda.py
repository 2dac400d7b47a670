"""KDA: S_i = (I - β_i k_i k_iᵀ) diag(α_i) S_{i-1} + β_i k_i v_iᵀ, y_i = n^(-1/2) S_iᵀ q_i.

Source: Kimi Team 2025, "Kimi Linear", eq. 1; gates as in the published code, without short
convolution, output norm and output gate.

q, k of unit length after SiLU (no ε); v after SiLU; β = σ(w_β·u); per key,
α = exp(-a softplus(W_2 W_1 u + b_α)).
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import silu, softplus

DIMS = {"d": 6, "h": 2, "n": 4, "p": 3, "r": 5}
COMPLEX: frozenset[str] = frozenset()
CONSTRAINTS: dict[str, str] = {"a": "positive"}


def shapes(dims: dict[str, int]) -> dict[str, dict[str, tuple[int, ...]]]:
    """Axes of every tensor; batch and time are left out."""
    d, h, n, p, r = (dims[axis] for axis in ("d", "h", "n", "p", "r"))
    return {
        "inputs": {"u": (d,)},
        "params": {
            "W_Q": (h, n, d),
            "W_K": (h, n, d),
            "W_V": (h, p, d),
            "w_beta": (h, d),
            "W_1": (r, d),
            "W_2": (h, n, r),
            "b_alpha": (h, n),
            "a": (h,),
        },
        "buffers": {},
        "states": {"S": (h, n, p)},
        "output": {"y": (h, p)},
    }


def forward(
    tensors: dict[str, Tensor], dims: dict[str, int], initial: dict[str, Tensor] | None = None
) -> tuple[Tensor, dict[str, Tensor]]:
    """The recurrence, token by token, with the transition as a full matrix."""
    t = tensors
    u = t["u"]
    batch, length = u.shape[:2]
    h, n, p = dims["h"], dims["n"], dims["p"]
    matrix = (initial or {}).get("S", u.new_zeros((batch, h, n, p)))
    unit = torch.eye(n, dtype=u.dtype)
    ys = []
    for i in range(length):
        q = silu(torch.einsum("hnd,bd->bhn", t["W_Q"], u[:, i]))
        k = silu(torch.einsum("hnd,bd->bhn", t["W_K"], u[:, i]))
        v = silu(torch.einsum("hpd,bd->bhp", t["W_V"], u[:, i]))
        q = q / torch.sqrt((q * q).sum(-1, keepdim=True))
        k = k / torch.sqrt((k * k).sum(-1, keepdim=True))
        beta = torch.sigmoid(u[:, i] @ t["w_beta"].T)[..., None, None]
        logit = torch.einsum("hnr,br->bhn", t["W_2"], u[:, i] @ t["W_1"].T) + t["b_alpha"]
        alpha = torch.exp(-t["a"][:, None] * softplus(logit))
        move = (unit - beta * k[..., :, None] * k[..., None, :]) @ torch.diag_embed(alpha)
        matrix = move @ matrix + beta * k[..., :, None] * v[..., None, :]
        ys.append(n**-0.5 * (matrix.mT @ q[..., None])[..., 0])
    return torch.stack(ys, 1) if ys else u.new_zeros((batch, 0, h, p)), {"S": matrix}
