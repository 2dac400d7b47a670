"""Separable attention: y_i = (1/η_i) Σ_{j≤i} (φ(q_i)·ψ(k_j)) v_j.

Source: Sieber et al. 2024 eq. 13-15; η_i (not η_{i-1}) and k = W_K u.

φ and ψ are abstract. By default φ(x) = tanh(A_φ x) and ψ(x) = tanh(A_ψ x), with the matrices phi_A
and psi_A.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

DIMS = {"d": 6, "h": 2, "n": 4, "p": 3, "r": 5}
COMPLEX: frozenset[str] = frozenset()
CONSTRAINTS = {"eta": "nonzero"}


def shapes(dims: dict[str, int]) -> dict[str, dict[str, tuple[int, ...]]]:
    """Axes of every tensor; batch and time are left out."""
    d, h, n, p, r = (dims[axis] for axis in ("d", "h", "n", "p", "r"))
    return {
        "inputs": {"u": (d,), "eta": (h,)},
        "params": {"W_Q": (h, n, d), "W_K": (h, n, d), "W_V": (h, p, d)},
        "buffers": {},
        "states": {},
        "output": {"y": (h, p)},
        "abstracts": {"phi_A": (r, n), "psi_A": (r, n)},
    }


def forward(
    tensors: dict[str, Tensor],
    dims: dict[str, int],
    initial: dict[str, Tensor] | None = None,
    abstracts: dict[str, Callable[[Tensor], Tensor]] | None = None,
) -> tuple[Tensor, dict[str, Tensor]]:
    """The definition; `abstracts` maps "phi" and "psi" to functions of the last axis, n -> r."""
    if initial:
        raise ValueError("a sum over the past has no initial state")
    u, eta = tensors["u"], tensors["eta"]
    batch, length = u.shape[:2]
    shape = (batch, dims["h"], dims["p"])
    q = torch.einsum("hnd,bld->blhn", tensors["W_Q"], u)
    k = torch.einsum("hnd,bld->blhn", tensors["W_K"], u)
    v = torch.einsum("hpd,bld->blhp", tensors["W_V"], u)
    ys = []
    for i in range(length):
        above = u.new_zeros(shape)
        for j in range(i + 1):
            if abstracts is None:
                phi = torch.tanh(q[:, i] @ tensors["phi_A"].T)
                psi = torch.tanh(k[:, j] @ tensors["psi_A"].T)
            else:
                phi, psi = abstracts["phi"](q[:, i]), abstracts["psi"](k[:, j])
            above = above + (phi * psi).sum(-1, keepdim=True) * v[:, j]
        ys.append(above / eta[:, i, :, None])
    return torch.stack(ys, 1) if ys else u.new_zeros((batch, 0, *shape[1:])), {}
