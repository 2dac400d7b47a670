"""GLA with its block: token shift, short convolutions, unit q and k, RMS norm and gate of y.

Source: Wang et al. 2025 eq. 6, published blocks.

In the order of the spec's `use` lines: ũ_i = μ u_i + (1 - μ) u_{i-1} replaces u everywhere below
(also in the decay and the gate); q, k, v = silu(FIR(W ũ)) with t taps; q, k divided by their
length; GLA; y divided by its root mean square over p; y times silu(W ũ). Neither norm has an ε or a
gain.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import silu

DIMS = {"d": 8, "h": 2, "n": 5, "p": 3, "r": 6, "t": 4}
COMPLEX: frozenset[str] = frozenset()
CONSTRAINTS = {"u_token_shift_mu": "unit"}


def shapes(dims: dict[str, int]) -> dict[str, dict[str, tuple[int, ...]]]:
    """Axes of every tensor; batch and time are left out."""
    d, h, n, p, r, t = (dims[axis] for axis in ("d", "h", "n", "p", "r", "t"))
    maps = {"W_Q": (h, n, d), "W_K": (h, n, d), "W_V": (h, p, d), "W_1": (r, d), "W_2": (h, n, r)}
    filters = {
        "q_short_conv_w": (h, n, t),
        "k_short_conv_w": (h, n, t),
        "v_short_conv_w": (h, p, t),
    }
    shift_and_gate = {"u_token_shift_mu": (d,), "y_gate_W": (h, p, d)}
    return {
        "inputs": {"u": (d,)},
        "params": {**maps, "b_alpha": (h, n), **filters, **shift_and_gate},
        "buffers": {},
        "states": {"S": (h, n, p)},
        "output": {"y": (h, p)},
    }


def _convolved(past: list[Tensor], weight: Tensor) -> Tensor:
    """silu(Σ_r w_r x_{i-r}) of the values up to now, the last one being x_i."""
    total = torch.zeros_like(past[-1])
    for r in range(min(weight.shape[-1], len(past))):
        total = total + weight[..., r] * past[-1 - r]
    return silu(total)


def forward(
    tensors: dict[str, Tensor], dims: dict[str, int], initial: dict[str, Tensor] | None = None
) -> tuple[Tensor, dict[str, Tensor]]:
    """The block, token by token; q, k, v and u before the start are 0."""
    u = tensors["u"]
    batch, length = u.shape[:2]
    h, n, p = dims["h"], dims["n"], dims["p"]
    matrix = (initial or {}).get("S", u.new_zeros((batch, h, n, p)))
    mu = tensors["u_token_shift_mu"]
    raw: dict[str, list[Tensor]] = {"q": [], "k": [], "v": []}
    ys = []
    for i in range(length):
        last = u[:, i - 1] if i else torch.zeros_like(u[:, 0])
        x = mu * u[:, i] + (1 - mu) * last
        for name, past in raw.items():
            past.append(torch.einsum("had,bd->bha", tensors[f"W_{name.upper()}"], x))
        q = _convolved(raw["q"], tensors["q_short_conv_w"])
        k = _convolved(raw["k"], tensors["k_short_conv_w"])
        v = _convolved(raw["v"], tensors["v_short_conv_w"])
        q = q / torch.sqrt((q * q).sum(-1, keepdim=True))
        k = k / torch.sqrt((k * k).sum(-1, keepdim=True))
        logit = torch.einsum("hnr,rd,bd->bhn", tensors["W_2"], tensors["W_1"], x)
        decay = torch.sigmoid(logit + tensors["b_alpha"]) ** (1 / 16)
        matrix = decay[..., None] * matrix + k[..., :, None] * v[..., None, :]
        y = n**-0.5 * (q[..., :, None] * matrix).sum(-2)
        y = y / torch.sqrt((y * y).mean(-1, keepdim=True))
        ys.append(y * silu(torch.einsum("hpd,bd->bhp", tensors["y_gate_W"], x)))
    return torch.stack(ys, 1) if ys else u.new_zeros((batch, 0, h, p)), {"S": matrix}
