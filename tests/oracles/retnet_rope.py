"""RetNet with rotation: y_i = Σ_{j≤i} γ^(i-j) Re(Σ_m Q_i conj(K_j) e^(iθ(i-j))) v_j.

Source: Wang et al. 2025 eq. 8 with RoPE; γ in (0, 1).

Written with rotated pairs: Q_i turned by e^(iθi), K_j by e^(iθj). The spec has no factor n^(-1/2)
here, unlike retnet; the axis n is inherited, no tensor has it.
"""

from __future__ import annotations

import torch
from torch import Tensor

DIMS = {"d": 6, "h": 2, "n": 4, "p": 3, "m": 5}
COMPLEX: frozenset[str] = frozenset()
CONSTRAINTS = {"gamma": "unit"}


def shapes(dims: dict[str, int]) -> dict[str, dict[str, tuple[int, ...]]]:
    """Axes of every tensor; batch and time are left out."""
    d, h, p, m = (dims[axis] for axis in ("d", "h", "p", "m"))
    pairs = {"Q_re": (h, m, d), "Q_im": (h, m, d), "K_re": (h, m, d), "K_im": (h, m, d)}
    return {
        "inputs": {"u": (d,)},
        "params": {"W_V": (h, p, d), **pairs},
        "buffers": {"gamma": (h,), "theta": (m,)},
        "states": {},
        "output": {"y": (h, p)},
    }


def _rotated(tensors: dict[str, Tensor], letter: str, i: int) -> tuple[Tensor, Tensor]:
    """Real and imaginary part, [B, h, m], of the i-th query or key turned by the angle θ i."""
    u = tensors["u"][:, i]
    re = torch.einsum("hmd,bd->bhm", tensors[f"{letter}_re"], u)
    im = torch.einsum("hmd,bd->bhm", tensors[f"{letter}_im"], u)
    cos, sin = torch.cos(i * tensors["theta"]), torch.sin(i * tensors["theta"])
    return re * cos - im * sin, re * sin + im * cos


def forward(
    tensors: dict[str, Tensor], dims: dict[str, int], initial: dict[str, Tensor] | None = None
) -> tuple[Tensor, dict[str, Tensor]]:
    """The definition: for each i, a sum over j ≤ i of rotated, discounted scores."""
    if initial:
        raise ValueError("a sum over the past has no initial state")
    u = tensors["u"]
    batch, length = u.shape[:2]
    shape = (batch, dims["h"], dims["p"])
    ys = []
    for i in range(length):
        y = u.new_zeros(shape)
        q_re, q_im = _rotated(tensors, "Q", i)
        for j in range(i + 1):
            k_re, k_im = _rotated(tensors, "K", j)
            score = (q_re * k_re + q_im * k_im).sum(-1, keepdim=True)
            v = torch.einsum("hpd,bd->bhp", tensors["W_V"], u[:, j])
            y = y + (tensors["gamma"] ** (i - j))[:, None] * score * v
        ys.append(y)
    return torch.stack(ys, 1) if ys else u.new_zeros((batch, 0, *shape[1:])), {}
