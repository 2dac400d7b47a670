"""GateLoop: S_i = a_i S_{i-1} + k_i v_iᵀ, y_i = Re(S_iᵀ q_i), a_i = σ(w_a·u) e^(i w_b·u).

Source: GateLoop (Sieber et al. 2024); polar form with σ.
"""

from __future__ import annotations

import torch
from torch import Tensor

DIMS = {"d": 6, "h": 2, "n": 4, "p": 3}
COMPLEX: frozenset[str] = frozenset({"S"})
CONSTRAINTS: dict[str, str] = {}


def shapes(dims: dict[str, int]) -> dict[str, dict[str, tuple[int, ...]]]:
    """Axes of every tensor; batch and time are left out."""
    d, h, n, p = (dims[axis] for axis in ("d", "h", "n", "p"))
    return {
        "inputs": {"u": (d,)},
        "params": {
            "W_Q": (h, n, d),
            "W_K": (h, n, d),
            "W_V": (h, p, d),
            "w_a": (h, d),
            "w_b": (h, d),
        },
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
    zero = u.new_zeros((batch, h, n, p), dtype=u.dtype.to_complex())
    matrix = (initial or {}).get("S", zero)
    ys = []
    for i in range(length):
        q = torch.einsum("hnd,bd->bhn", tensors["W_Q"], u[:, i])
        k = torch.einsum("hnd,bd->bhn", tensors["W_K"], u[:, i])
        v = torch.einsum("hpd,bd->bhp", tensors["W_V"], u[:, i])
        modulus, angle = torch.sigmoid(u[:, i] @ tensors["w_a"].T), u[:, i] @ tensors["w_b"].T
        decay = modulus * torch.cos(angle) + 1j * modulus * torch.sin(angle)
        matrix = decay[..., None, None] * matrix + k[..., :, None] * v[..., None, :]
        ys.append((q[..., :, None] * matrix).sum(-2).real)
    return torch.stack(ys, 1) if ys else u.new_zeros((batch, 0, h, p)), {"S": matrix}
