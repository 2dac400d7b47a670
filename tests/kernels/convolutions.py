"""Convolutions drawn at random, and the loop over tokens that they are."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

import dsfc
from dsfc.expr.tree import Field
from dsfc.plan.scan_ir import Adjoint, Scan

Array = NDArray[Any]
ROUNDED = 1e-14
"""Largest error in float64, relative to the tensor's largest entry, for each token."""


@cache
def scan_of(spec: str) -> tuple[Scan, Adjoint]:
    plan = dsfc.load(spec).plan
    scan = next(k for k in plan.kernels if isinstance(k, Scan))
    return scan, next(a for a in plan.adjoints if a.scan == scan.name)


def planes(x: Tensor) -> Array:
    x = x.detach().resolve_conj()
    out: Array = (torch.view_as_real(x) if x.is_complex() else x).numpy()
    return out


def drawn(
    spec: str, wide: bool, length: int, strong: bool, sizes: Mapping[str, int]
) -> dict[str, Tensor]:
    """Constants, values and states; among strong decays, log |λ| of minus infinity and of -60."""
    scan, _ = scan_of(spec)
    draw = torch.Generator().manual_seed(length)
    is_complex = scan.field is Field.COMPLEX

    def normal(*shape: int, is_complex: bool = is_complex) -> Tensor:
        field = torch.complex128 if is_complex else torch.float64
        return torch.randn(shape, generator=draw, dtype=field)

    G, B, C, N = (sizes[name] for name in "GBCN")
    size = normal(G, C, N, is_complex=False).abs()
    if strong:
        size[:, 0] = torch.inf
        size[:, 1] = 60
    log = torch.complex(-size, normal(G, C, N, is_complex=False)) if is_complex else -size
    return {
        "q": normal(G, C, N),
        "k": normal(G, C, N),
        "v": normal(G, B, length, C, is_complex=wide),
        "g": log,
        "S": normal(G, B, C, N),
        "do": normal(G, B, length, C, is_complex=wide),
        "dS_last": normal(G, B, C, N),
    }


def by_tokens(x: dict[str, Tensor], wide: bool) -> tuple[Tensor, Tensor]:
    """Outputs and last state of h_i = λ h + k v_i, o_i = Σ_n q h_i or its real part."""
    state, outputs = x["S"], []
    decay = torch.exp(x["g"])
    for v in x["v"].unbind(2):
        state = decay[:, None] * state + x["k"][:, None] * v[..., None]
        o = (x["q"][:, None] * state).sum(-1)
        outputs.append(o if wide or not o.is_complex() else o.real)
    return (torch.stack(outputs, 2) if outputs else 0 * x["v"].detach()), state


def agree(got: Array, want: Tensor, length: int, name: str, rounded: float = ROUNDED) -> None:
    expected = planes(want)
    assert got.shape == expected.shape, name
    bar = rounded * (1 + length) * float(np.abs(expected).max(initial=1))
    assert np.abs(got - expected).max(initial=0) <= bar, name
