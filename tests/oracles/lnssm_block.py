"""LNSSM with its whole layer: normalised queries and keys, shifted keys and values, gate, output.

x̃ = μ x_i + (1 - μ) x_{i-1} for keys and for values, each with its own μ; q and k over their root
mean square along n, times a gain; S_i = A S_{i-1} + e^(k_i) v_iᵀ, z_i = A z_{i-1} + e^(k_i);
y_i = W_O (silu(W_g u_i) (S_iᵀ e^(q_i)) / (z_i·e^(q_i))).

Source: Anonymous 2025 §4.5, eq. 12, 15; QK-RMSNorm of Dehghani et al. 2023 (before the
exponential), KV-shift of RWKV (Peng et al. 2023). A = exp(-exp(ω)).
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
        "params": {
            "W_Q": (h, n, d),
            "W_K": (h, n, d),
            "W_V": (h, p, d),
            "omega": (h, n),
            "W_g": (h, p, d),
            "mu_k": (d,),
            "mu_v": (d,),
            "g_q": (h, n),
            "g_k": (h, n),
            "W_O": (d, h, p),
        },
        "buffers": {},
        "states": {"S": (h, n, p), "z": (h, n)},
        "output": {"y": (d,)},
    }


def forward(
    tensors: dict[str, Tensor], dims: dict[str, int], initial: dict[str, Tensor] | None = None
) -> tuple[Tensor, dict[str, Tensor]]:
    """The layer, token by token; u before the start is 0."""
    u = tensors["u"]
    batch, length = u.shape[:2]
    h, n, p = dims["h"], dims["n"], dims["p"]
    given = initial or {}
    matrix = given.get("S", u.new_zeros((batch, h, n, p)))
    total = given.get("z", u.new_zeros((batch, h, n)))
    decay = torch.exp(-torch.exp(tensors["omega"]))

    def normed(x: Tensor, gain: Tensor) -> Tensor:
        return gain * x / torch.sqrt((x * x).mean(-1, keepdim=True))

    last = torch.zeros_like(u[:, 0]) if length else None
    ys = []
    for i in range(length):
        x = u[:, i]
        shifted = {a: tensors[f"mu_{a}"] * x + (1 - tensors[f"mu_{a}"]) * last for a in ("k", "v")}
        q = normed(torch.einsum("hnd,bd->bhn", tensors["W_Q"], x), tensors["g_q"])
        k = normed(torch.einsum("hnd,bd->bhn", tensors["W_K"], shifted["k"]), tensors["g_k"])
        v = torch.einsum("hpd,bd->bhp", tensors["W_V"], shifted["v"])
        matrix = decay[..., None] * matrix + torch.exp(k)[..., :, None] * v[..., None, :]
        total = decay * total + torch.exp(k)
        below = (torch.exp(q) * total).sum(-1, keepdim=True)
        mean = (torch.exp(q)[..., :, None] * matrix).sum(-2) / below
        gate = silu(torch.einsum("hpd,bd->bhp", tensors["W_g"], x))
        ys.append(torch.einsum("dhp,bhp->bd", tensors["W_O"], gate * mean))
        last = x
    y = torch.stack(ys, 1) if ys else u.new_zeros((batch, 0, dims["d"]))
    return y, {"S": matrix, "z": total}
