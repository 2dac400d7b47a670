"""Rules of complex numbers: the disc of the exact number, and a bound on the computed one's error.

A real operand is the disc around its interval.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dsfc.rounding.arithmetic import Fresh
from dsfc.rounding.enclosure import Enclosure, Parts, computed, enclose
from dsfc.rounding.units import SLACK, ULPS, gamma, least, unit

MULTIPLICATION = 4
"""A complex product is off by at most this many u, with or without fused operations (√8 and √5)."""


def disc(x: Enclosure) -> Parts:
    """Returns middle, radius and error of an enclosure that may be real."""
    a, b, e = x.parts
    if x.dtype.is_complex:
        return a, b, e
    middle = (a + b) / 2
    finite = middle.isfinite()
    middle = torch.where(finite, middle, torch.zeros_like(middle))
    radius = torch.where(
        finite, torch.maximum(b - middle, middle - a), torch.full_like(b, torch.inf)
    )
    return middle.to(torch.complex128), radius, e


def _out(
    middle: Tensor, radius: Tensor, passed: Tensor, dtype: torch.dtype, share: float
) -> tuple[Enclosure, Fresh]:
    grown = radius + (middle.abs() + radius) * SLACK * 4
    out = enclose((middle, grown, passed * (1 + 2.0**-40)), dtype)
    return out, computed(out) * (share * (1 + 2.0**-40)) + 2 * least(dtype)


def add(x: Enclosure, y: Enclosure, dtype: torch.dtype) -> tuple[Enclosure, Fresh]:
    """X + y."""
    (a, r, e), (c, s, f) = disc(x), disc(y)
    return _out(a + c, r + s, e + f, dtype, unit(dtype))


def multiply(x: Enclosure, y: Enclosure, dtype: torch.dtype) -> tuple[Enclosure, Fresh]:
    """X y."""
    (a, r, e), (c, s, f) = disc(x), disc(y)
    size_x, size_y = a.abs() + r, c.abs() + s
    radius = a.abs() * s + r * size_y
    passed = size_x * f + e * (size_y + f)
    return _out(a * c, radius, passed, dtype, MULTIPLICATION * unit(dtype))


def exponential(x: Enclosure, dtype: torch.dtype) -> tuple[Enclosure, Fresh]:
    """e^x."""
    a, r, e = disc(x)
    middle, size = torch.exp(a), torch.exp(a.real)
    radius = size * torch.expm1(r)
    passed = size * torch.exp(r) * torch.expm1(e)
    share = (2 * ULPS * 3 + 2) * unit(dtype)
    return _out(middle, radius + size * (1 + a.abs()) * SLACK, passed, dtype, share)


def total(x: Enclosure, dims: list[int], keep: bool, dtype: torch.dtype) -> tuple[Enclosure, Fresh]:
    """Σ over axes, in any order."""
    middle, radius, passed = (part.sum(dims, keepdim=keep) for part in x.parts)
    size, terms = computed(x).sum(dims, keepdim=keep), 1
    for dim in dims:
        terms *= x.shape[dim]
    out = enclose((middle, radius + size * (terms + 4) * SLACK, passed * (1 + 2.0**-40)), dtype)
    return out, size * (gamma(max(terms - 1, 0), dtype) * (1 + 2.0**-40))


def joined(re: Enclosure, im: Enclosure, dtype: torch.dtype) -> Enclosure:
    """Returns a complex number from its parts."""
    (a, r, e), (c, s, f) = disc(re), disc(im)
    middle = torch.complex(a.real.contiguous(), c.real.contiguous())
    up = 1 + 2.0**-40
    return enclose((middle, torch.hypot(r, s) * up, torch.hypot(e, f) * up), dtype, copied=True)


def parted(x: Enclosure, dtype: torch.dtype) -> Enclosure:
    """Returns the real and the imaginary part of numbers, along a new last axis."""
    a, r, e = x.parts
    both = torch.view_as_real(a.resolve_conj().contiguous())
    radius, error = (part.unsqueeze(-1).expand(both.shape) for part in (r, e))
    return enclose((both - radius, both + radius, error.clone()), dtype, copied=True)
