"""Rules of sums, products and quotients of real numbers.

Each gives the interval of the exact result, and bounds the error by what the operands' errors do to
it and a term of rounding. Nothing depends on the order in which terms are added.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dsfc.rounding.enclosure import Enclosure, computed, enclose, magnitude, outward
from dsfc.rounding.units import gamma, least, unit, wide

Fresh = Tensor
"""A term of rounding, which an interpreter may leave out to see what it is worth."""


def rounded(
    low: Tensor, high: Tensor, passed: Tensor, dtype: torch.dtype, share: float = 0.0
) -> tuple[Enclosure, Fresh]:
    """Returns an enclosure without its rounding, and the rounding.

    Args:
        low: of the exact result.
        high: of the exact result.
        passed: what errors of operands do to the result.
        dtype: of the result.
        share: by what share of its size a result is off before it is rounded to the dtype.
    """
    low, high = outward(low, high)
    passed = passed * (1 + 2.0**-40)
    out = enclose((low, high, passed), dtype)
    size = computed(out)
    inner = unit(wide(dtype)) if wide(dtype) != dtype else 0.0
    relative = (1 + share) * (1 + unit(dtype)) * (1 + inner) - 1
    return out, size * (relative * (1 + 2.0**-40)) + least(dtype)


def add(x: Enclosure, y: Enclosure, dtype: torch.dtype) -> tuple[Enclosure, Fresh]:
    """X + y."""
    (a, b, e), (c, d, f) = x.parts, y.parts
    return rounded(a + c, b + d, e + f, dtype)


def negative(x: Enclosure) -> Enclosure:
    """-x, which is exact."""
    a, b, e = x.parts
    if x.dtype.is_complex:
        return Enclosure((-a, b.clone(), e.clone()), x.dtype)
    return Enclosure((-b, -a, e.clone()), x.dtype)


def multiply(x: Enclosure, y: Enclosure, dtype: torch.dtype) -> tuple[Enclosure, Fresh]:
    """X y."""
    (a, b, e), (c, d, f) = x.parts, y.parts
    corners = [p * q for p in (a, b) for q in (c, d)]
    low = torch.minimum(torch.minimum(corners[0], corners[1]), torch.minimum(*corners[2:]))
    high = torch.maximum(torch.maximum(corners[0], corners[1]), torch.maximum(*corners[2:]))
    passed = magnitude(x) * f + magnitude(y) * e + e * f
    return rounded(low, high, passed, dtype)


def divide(x: Enclosure, y: Enclosure, dtype: torch.dtype) -> tuple[Enclosure, Fresh, Tensor]:
    """X / y, and where the computed divisor may be 0."""
    (a, b, e), (c, d, f) = x.parts, y.parts
    pole = (c - f <= 0) & (d + f >= 0)
    corners = [p / q for p in (a, b) for q in (c, d)]
    low = torch.minimum(torch.minimum(corners[0], corners[1]), torch.minimum(*corners[2:]))
    high = torch.maximum(torch.maximum(corners[0], corners[1]), torch.maximum(*corners[2:]))
    away = torch.where(c > 0, c - f, -d - f)  # how far a computed divisor is from 0
    ratio = torch.maximum(low.abs(), high.abs())
    passed = (e + ratio * f) / away
    low, high = low.masked_fill(pole, -torch.inf), high.masked_fill(pole, torch.inf)
    out, fresh = rounded(low, high, passed.masked_fill(pole, torch.inf), dtype)
    return out, fresh, pole


def total(x: Enclosure, dims: list[int], keep: bool, dtype: torch.dtype) -> tuple[Enclosure, Fresh]:
    """Σ over axes, in any order."""
    a, b, e = (part.sum(dims, keepdim=keep) for part in x.parts)
    size = computed(x).sum(dims, keepdim=keep)
    terms = 1
    for dim in dims:
        terms *= x.shape[dim]
    low, high = outward(a, b, size * max(terms, 1))
    out = enclose((low, high, e * (1 + 2.0**-40)), dtype)
    share = gamma(max(terms - 1, 0), wide(dtype)) + (unit(dtype) if wide(dtype) != dtype else 0)
    return out, size * (share * (1 + 2.0**-40)) + least(dtype) * (terms > 1)


def running_total(x: Enclosure, dim: int, dtype: torch.dtype) -> tuple[Enclosure, Fresh]:
    """Sums from the start of an axis through each place, in any order."""
    a, b, e = (part.cumsum(dim) for part in x.parts)
    size = computed(x).cumsum(dim)
    count = x.shape[dim]
    shares = [gamma(k, wide(dtype)) * (1 + 2.0**-40) for k in range(count)]
    shape = [1] * x.ndim
    if x.ndim:
        shape[dim] = count
    share = torch.tensor(shares, dtype=torch.float64).reshape(shape)
    if wide(dtype) != dtype:
        share = share + unit(dtype) * 1.01
    low, high = outward(a, b, size * max(count, 1))
    return enclose((low, high, e * (1 + 2.0**-40)), dtype), size * share
