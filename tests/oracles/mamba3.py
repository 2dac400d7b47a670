"""Mamba-3: trapezoids in time, and keys and queries turned by the angles of all tokens so far.

S_i = α_i S_{i-1} + (1 - λ_i) Δ_i α_i b_{i-1} x_{i-1}ᵀ + λ_i Δ_i b_i x_iᵀ,
y_i = S_iᵀ c_i + D x_i, with α = exp(-Δ a), Δ = softplus(w_Δ·u + b_Δ), λ = σ(w_λ·u), and pairs of
entries of b_i and c_i turned by -Σ_{j≤i} Δ_j θ_j, θ = W_θ u.

Source: Lahoti et al. 2026, "Mamba-3: Improved Sequence Modeling using State Space Principles",
the exponential-trapezoidal rule and the complex recurrence in its rotary form; one input and output
a head, without the norms of b and c. Before the first token nothing is added.

The spec has another state, so that none is compared: that of the paper less λ_i Δ_i b_i x_iᵀ.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import softplus

DIMS = {"d": 6, "h": 2, "m": 4, "p": 3}
COMPLEX: frozenset[str] = frozenset()
CONSTRAINTS = {"a": "positive"}


def shapes(dims: dict[str, int]) -> dict[str, dict[str, tuple[int, ...]]]:
    """Axes of every tensor; batch and time are left out."""
    d, h, m, p = (dims[axis] for axis in ("d", "h", "m", "p"))
    pairs = {f"{letter}_{part}": (m, d) for letter in "BC" for part in ("re", "im")}
    biases = {f"{letter}_{part}": (h, m) for letter in "bc" for part in ("re", "im")}
    scalars = {"b_Delta": (h,), "a": (h,), "D": (h,)}
    maps = {"W_x": (h, p, d), "W_theta": (h, m, d), "w_Delta": (h, d), "w_lambda": (h, d)}
    return {
        "inputs": {"u": (d,)},
        "params": {**maps, **pairs, **biases, **scalars},
        "buffers": {},
        "states": {},
        "output": {"y": (h, p)},
    }


def _turned(t: dict[str, Tensor], letter: str, u: Tensor, angle: Tensor) -> Tensor:
    """The key or query of a token, `[B, h, 2 m]`, its m pairs turned by `[B, h, m]`."""
    re, im = (
        (u @ t[f"{letter}_{x}"].T)[:, None] + t[f"{letter.lower()}_{x}"] for x in ("re", "im")
    )
    cos, sin = torch.cos(angle), torch.sin(angle)
    return torch.cat([re * cos - im * sin, re * sin + im * cos], -1)


def forward(
    tensors: dict[str, Tensor], dims: dict[str, int], initial: dict[str, Tensor] | None = None
) -> tuple[Tensor, dict[str, Tensor]]:
    """The recurrence, token by token, in real numbers."""
    if initial:
        raise ValueError("the recurrence has another state here")
    t = tensors
    u = t["u"]
    batch, length = u.shape[:2]
    h, m, p = dims["h"], dims["m"], dims["p"]
    angle, state = u.new_zeros((batch, h, m)), u.new_zeros((batch, h, 2 * m, p))
    before = torch.zeros_like(state)
    ys = []
    for i in range(length):
        x = torch.einsum("hpd,bd->bhp", t["W_x"], u[:, i])
        step = softplus(u[:, i] @ t["w_Delta"].T + t["b_Delta"])
        share = torch.sigmoid(u[:, i] @ t["w_lambda"].T)
        alpha = torch.exp(-step * t["a"])
        angle = angle - step[..., None] * torch.einsum("hmd,bd->bhm", t["W_theta"], u[:, i])
        added = _turned(t, "B", u[:, i], angle)[..., None] * x[..., None, :]
        old, new = (1 - share) * step * alpha, share * step
        state = alpha[..., None, None] * state + old[..., None, None] * before
        state = state + new[..., None, None] * added
        before = added
        query = _turned(t, "C", u[:, i], angle)
        ys.append((query[..., None] * state).sum(-2) + t["D"][:, None] * x)
    return torch.stack(ys, 1) if ys else u.new_zeros((batch, 0, h, p)), {}
