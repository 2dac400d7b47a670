"""Multi-head normalised attention with an output map: y_i = W_O concat_h o_i^h.

Source: Sieber et al. 2024 App. G; one block per head, η_i.

o_i^h = Σ_{j≤i} (q_i^h·k_j^h) v_j^h / exp(w_η^h·u_i + b_η^h). The paper prints one Kronecker factor
for all heads (eq. 28) and has no output map; the spec follows the published code, which has one.
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
    maps = {"W_Q": (h, n, d), "W_K": (h, n, d), "W_V": (h, p, d), "W_O": (d, h, p)}
    return {
        "inputs": {"u": (d,)},
        "params": {**maps, "w_eta": (h, d), "b_eta": (h,)},
        "buffers": {},
        "states": {},
        "output": {"y": (d,)},
        "recurrent": {"S": (h, n, p)},
    }


def forward(
    tensors: dict[str, Tensor], dims: dict[str, int], initial: dict[str, Tensor] | None = None
) -> tuple[Tensor, dict[str, Tensor]]:
    """The definition, head by head: a sum over j ≤ i divided by η_i, then the columns of W_O."""
    if initial:
        raise ValueError("a sum over the past has no initial state")
    u = tensors["u"]
    batch, length = u.shape[:2]
    ys = []
    for i in range(length):
        y = u.new_zeros((batch, dims["d"]))
        for head in range(dims["h"]):
            q = u[:, i] @ tensors["W_Q"][head].T
            eta = torch.exp(u[:, i] @ tensors["w_eta"][head] + tensors["b_eta"][head])
            above = u.new_zeros((batch, dims["p"]))
            for j in range(i + 1):
                k, v = u[:, j] @ tensors["W_K"][head].T, u[:, j] @ tensors["W_V"][head].T
                above = above + (q * k).sum(-1, keepdim=True) * v
            y = y + (above / eta[:, None]) @ tensors["W_O"][:, head].T
        ys.append(y)
    return torch.stack(ys, 1) if ys else u.new_zeros((batch, 0, dims["d"])), {}


def recurrent(
    tensors: dict[str, Tensor], dims: dict[str, int], initial: dict[str, Tensor] | None = None
) -> tuple[Tensor, dict[str, Tensor]]:
    """Λ = I with post-scaling: S_i = S_{i-1} + k_i v_iᵀ, y_i = W_O (S_iᵀ q_i / η_i)."""
    u = tensors["u"]
    batch, length = u.shape[:2]
    matrix = (initial or {}).get("S", u.new_zeros((batch, dims["h"], dims["n"], dims["p"])))
    ys = []
    for i in range(length):
        q = torch.einsum("hnd,bd->bhn", tensors["W_Q"], u[:, i])
        k = torch.einsum("hnd,bd->bhn", tensors["W_K"], u[:, i])
        v = torch.einsum("hpd,bd->bhp", tensors["W_V"], u[:, i])
        eta = torch.exp(torch.einsum("hd,bd->bh", tensors["w_eta"], u[:, i]) + tensors["b_eta"])
        matrix = matrix + k[..., :, None] * v[..., None, :]
        o = (q[..., :, None] * matrix).sum(-2) / eta[..., None]
        ys.append(torch.einsum("dhp,bhp->bd", tensors["W_O"], o))
    return torch.stack(ys, 1) if ys else u.new_zeros((batch, 0, dims["d"])), {"S": matrix}
