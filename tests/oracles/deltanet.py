"""DeltaNet: S_i = (I - β_i k_i k_iᵀ) S_{i-1} + β_i k_i v_iᵀ, y_i = n^(-1/2) S_iᵀ q_i.

Source: DeltaNet (Rickenbach et al. 2025, Wang et al. 2025); as in the code.

q and k have unit length after SiLU (no ε in the norm); β = σ(w_β·u).
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import silu

DIMS = {"d": 6, "h": 2, "n": 4, "p": 3}
COMPLEX: frozenset[str] = frozenset()
CONSTRAINTS: dict[str, str] = {}


def shapes(dims: dict[str, int]) -> dict[str, dict[str, tuple[int, ...]]]:
    """Axes of every tensor; batch and time are left out."""
    d, h, n, p = (dims[axis] for axis in ("d", "h", "n", "p"))
    return {
        "inputs": {"u": (d,)},
        "params": {"W_Q": (h, n, d), "W_K": (h, n, d), "W_V": (h, p, d), "w_beta": (h, d)},
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
        q = torch.einsum("hnd,bd->bhn", tensors["W_Q"], u[:, i])
        k = torch.einsum("hnd,bd->bhn", tensors["W_K"], u[:, i])
        v = torch.einsum("hpd,bd->bhp", tensors["W_V"], u[:, i])
        q, k = silu(q), silu(k)
        q = q / torch.sqrt((q * q).sum(-1, keepdim=True))
        k = k / torch.sqrt((k * k).sum(-1, keepdim=True))
        beta = torch.sigmoid(u[:, i] @ tensors["w_beta"].T)
        projector = torch.eye(n, dtype=u.dtype, device=u.device)
        projector = projector - beta[..., None, None] * k[..., :, None] * k[..., None, :]
        matrix = projector @ matrix + (beta[..., None] * k)[..., :, None] * v[..., None, :]
        ys.append(n**-0.5 * (q[..., :, None] * matrix).sum(-2))
    return torch.stack(ys, 1) if ys else u.new_zeros((batch, 0, h, p)), {"S": matrix}
