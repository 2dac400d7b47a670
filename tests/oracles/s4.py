"""S4: h' = A h + B u, A = diag(λ) - P P^*, bilinear step, y = 2 Re(C h) + D u.

Source: S4 (Wang et al. 2025 eq. 2); A, not diag(λ), is discretised.

λ = -e^a + iω (the formula in the literature writes -i·(…): the sign of the free ω), Δ = e^(log_Δ)
per channel; Ā = (I - ΔA/2)^(-1) (I + ΔA/2), B̄ = (I - ΔA/2)^(-1) Δ B; A, B, P are shared by the
channels. C is applied without conjugation.
"""

from __future__ import annotations

import torch
from torch import Tensor

DIMS = {"d": 4, "n": 3}
COMPLEX = frozenset({"P", "B", "C", "x"})
CONSTRAINTS: dict[str, str] = {}


def shapes(dims: dict[str, int]) -> dict[str, dict[str, tuple[int, ...]]]:
    """Axes of every tensor; batch and time are left out."""
    d, n = dims["d"], dims["n"]
    poles = {"a": (n,), "omega": (n,), "P": (n,), "B": (n,)}
    return {
        "inputs": {"u": (d,)},
        "params": {**poles, "C": (d, n), "log_Delta": (d,), "D": (d,)},
        "buffers": {},
        "states": {"x": (d, n)},
        "output": {"y": (d,)},
    }


def forward(
    tensors: dict[str, Tensor], dims: dict[str, int], initial: dict[str, Tensor] | None = None
) -> tuple[Tensor, dict[str, Tensor]]:
    """The discretised system, one dense matrix per channel, token by token."""
    u, low = tensors["u"], tensors["P"]
    batch, length = u.shape[:2]
    d, n = dims["d"], dims["n"]
    field = u.dtype.to_complex()
    x = (initial or {}).get("x", u.new_zeros((batch, d, n), dtype=field))
    drift = torch.diag(-torch.exp(tensors["a"]) + 1j * tensors["omega"])
    drift = drift - low[:, None] * low.conj()[None, :]
    identity = torch.eye(n, dtype=field, device=u.device)
    transitions, drives = [], []
    for channel in range(d):
        step = torch.exp(tensors["log_Delta"][channel])
        inverse = torch.linalg.inv(identity - step / 2 * drift)
        transitions.append(inverse @ (identity + step / 2 * drift))
        drives.append(inverse @ (step * tensors["B"]))
    ys = []
    for i in range(length):
        columns = [
            x[:, channel] @ transitions[channel].T + u[:, i, channel, None] * drives[channel]
            for channel in range(d)
        ]
        x = torch.stack(columns, 1)
        ys.append(2 * (tensors["C"] * x).sum(-1).real + tensors["D"] * u[:, i])
    return torch.stack(ys, 1) if ys else u.new_zeros((batch, 0, d)), {"x": x}
