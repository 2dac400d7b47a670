"""H3: y = q (2 Re(Σ_n C x) + D z), x_i = e^(-e^a + iω) x_{i-1} + z_i, z = (FIR(k) + D_k k) v.

Source: Wang et al. 2025 App. B; head width 1.

FIR(k)_i = Σ_{r<t} w_r k_{i-r}; the transition is discrete (no step size) and shared by the
channels.
"""

from __future__ import annotations

import torch
from torch import Tensor

DIMS = {"d": 5, "n": 3, "t": 4}
COMPLEX = frozenset({"C", "x"})
CONSTRAINTS: dict[str, str] = {}


def shapes(dims: dict[str, int]) -> dict[str, dict[str, tuple[int, ...]]]:
    """Axes of every tensor; batch and time are left out."""
    d, n, t = dims["d"], dims["n"], dims["t"]
    maps = {"W_q": (d, d), "W_k": (d, d), "W_v": (d, d)}
    vectors = {"w": (d, t), "D_k": (d,), "D": (d,), "a": (n,), "omega": (n,)}
    return {
        "inputs": {"u": (d,)},
        "params": {**maps, **vectors, "C": (d, n)},
        "buffers": {},
        "states": {"x": (d, n)},
        "output": {"y": (d,)},
    }


def forward(
    tensors: dict[str, Tensor], dims: dict[str, int], initial: dict[str, Tensor] | None = None
) -> tuple[Tensor, dict[str, Tensor]]:
    """Filter, product and recurrence, token by token; taps before the start are 0."""
    u = tensors["u"]
    batch, length = u.shape[:2]
    zero = u.new_zeros((batch, dims["d"], dims["n"]), dtype=u.dtype.to_complex())
    x = (initial or {}).get("x", zero)
    decay = torch.exp(-torch.exp(tensors["a"]) + 1j * tensors["omega"])
    ys = []
    for i in range(length):
        q, k, v = (u[:, i] @ tensors[name].T for name in ("W_q", "W_k", "W_v"))
        shifted = tensors["D_k"] * k
        for r in range(min(dims["t"], i + 1)):
            shifted = shifted + tensors["w"][:, r] * (u[:, i - r] @ tensors["W_k"].T)
        z = shifted * v
        x = decay * x + z[..., None]
        ys.append(q * (2 * (tensors["C"] * x).sum(-1).real + tensors["D"] * z))
    return torch.stack(ys, 1) if ys else u.new_zeros((batch, 0, dims["d"])), {"x": x}
