"""Rules of products of matrices, and of Fourier transforms: sums of products in any order."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from dsfc.rounding.arithmetic import Fresh
from dsfc.rounding.enclosure import Enclosure, computed, enclose, magnitude, outward
from dsfc.rounding.units import gamma, least, unit, wide

TRANSFORM = 8
"""A Fourier transform errs by this many u log2(N) of its Euclidean length, at most."""


def product(x: Enclosure, y: Enclosure, dtype: torch.dtype) -> tuple[Enclosure, Fresh]:
    """The product of two matrices, or of batches of them."""
    terms = x.shape[-1]
    size_x, size_y = magnitude(x), magnitude(y)
    e, f = x.parts[2], y.parts[2]
    passed = size_x @ f + e @ (size_y + f)
    size = (size_x + e) @ (size_y + f)
    if dtype.is_complex:
        (a, r, _), (c, s, _) = (_disc(z) for z in (x, y))
        radius = a.abs() @ s + r @ (c.abs() + s) + size * (terms + 4) * 2.0**-50
        out = enclose((a @ c, radius, passed * (1 + 2.0**-40)), dtype)
        factor = math.sqrt(2) * gamma(2 * terms + 2, wide(dtype))
        share = torch.full_like(size, factor)
    else:
        low, high = _interval(x, y)
        low, high = outward(low, high, size * (terms + 4))
        out = enclose((low, high, passed * (1 + 2.0**-40)), dtype)
        # Products with 0 and sums with 0 are exact: what counts is how many terms are not 0.
        counted = (size_x + e > 0).double() @ (size_y + f > 0).double()
        nu = counted * unit(wide(dtype))
        share = torch.where(nu < 0.5, nu / (1 - nu), torch.full_like(nu, torch.inf))
    if wide(dtype) != dtype:
        share = (1 + share) * (1 + unit(dtype)) - 1
    fresh = torch.where(size > 0, size * share * (1 + 2.0**-40), torch.zeros_like(size))
    return out, fresh + least(dtype) * terms * (size > 0)


def _interval(x: Enclosure, y: Enclosure) -> tuple[Tensor, Tensor]:
    """Where the entries of a real product lie."""
    (a, b, _), (c, d, _) = x.parts, y.parts
    if bool((a >= 0).all()):
        return a @ c.clamp(min=0) + b @ c.clamp(max=0), b @ d.clamp(min=0) + a @ d.clamp(max=0)
    if bool((c >= 0).all()):
        return a.clamp(min=0) @ c + a.clamp(max=0) @ d, b.clamp(min=0) @ d + b.clamp(max=0) @ c
    mid_x, rad_x, mid_y, rad_y = (a + b) / 2, (b - a) / 2, (c + d) / 2, (d - c) / 2
    middle = mid_x @ mid_y
    if bool((rad_x == 0).all()) and bool((rad_y == 0).all()):
        return middle, middle
    radius = mid_x.abs() @ rad_y + rad_x @ (mid_y.abs() + rad_y)
    return middle - radius, middle + radius


def _disc(x: Enclosure) -> tuple[Tensor, Tensor, Tensor]:
    """Middle, radius and error, of real numbers too."""
    a, b, e = x.parts
    if x.dtype.is_complex:
        return a, b, e
    return ((a + b) / 2).to(torch.complex128), (b - a) / 2, e


def transform(
    x: Enclosure, middle: Tensor, dim: int, scale: float, dtype: torch.dtype
) -> tuple[Enclosure, Fresh]:
    """A Fourier transform along one axis, forth or back.

    Args:
        x: what is transformed.
        middle: the transform of its middle, as float64 computes it.
        dim: the axis.
        scale: what the sums are divided by: 1, or the number N of terms.
        dtype: of the result.
    """
    count = max(x.shape[dim], middle.shape[dim])
    steps = max(math.log2(max(count, 2)), 1)
    _, radius, error = _disc(x)
    twice = 2 if middle.shape[dim] > x.shape[dim] else 1  # half of a spectrum that is mirrored

    def spread(part: Tensor) -> Tensor:
        summed = part.sum(dim, keepdim=True) * twice / scale
        return summed.expand(middle.shape).clone()

    length = (computed(x) ** 2).sum(dim, keepdim=True).sqrt() * twice
    length = (length * math.sqrt(count) / scale).expand(middle.shape)
    own = length * (TRANSFORM * steps * 2.0**-52)
    passed = spread(error) * (1 + 2.0**-40)
    radius = spread(radius) + own
    if dtype.is_complex:
        out = enclose((middle, radius, passed), dtype)
    else:
        out = enclose((middle - radius, middle + radius, passed), dtype)
    return out, length * (TRANSFORM * steps * unit(dtype) * (1 + 2.0**-30)) + least(dtype)


def solved(t: Enclosure, b: Enclosure, upper: bool, dtype: torch.dtype) -> tuple[Enclosure, Fresh]:
    """The solution x of a triangular system t x = b whose diagonal is 1, by substitution.

    |t^{-1}| is at most the inverse of the matrix with -|t| beside its diagonal; the computed x
    solves a system whose entries are off by γ_n of themselves.
    """
    (low, high, e), (c, d, f) = t.parts, b.parts
    n = low.shape[-1]
    part = torch.Tensor.triu if upper else torch.Tensor.tril
    beside, off = (part(x, 1 if upper else -1) for x in (magnitude(t), e))
    share = gamma(n, wide(dtype)) * (1 + 2.0**-40) + n * 2.0**-50
    worst = (beside + off) * (1 + 4 * share)
    eye, solve = torch.eye(n, dtype=torch.float64), torch.linalg.solve_triangular

    def back(x: Tensor) -> Tensor:
        size: Tensor = solve(eye - worst, x, upper=upper, unitriangular=True)
        return size * (1 + n * 2.0**-50)

    middle_t = part((low + high) / 2, 1 if upper else -1) + eye
    middle = solve(middle_t, (c + d) / 2, upper=upper, unitriangular=True)
    size = back(magnitude(b) + f) * (1 + 4 * share)
    radius_t = part((high - low) / 2, 1 if upper else -1)
    slack = (size + beside @ size) * n * 2.0**-50
    radius = back((d - c) / 2 + radius_t @ size + slack)
    passed = back(f + off @ size) * (1 + 2.0**-40)
    out = enclose((middle - radius, middle + radius, passed), dtype)
    return out, back((size + worst @ size) * share) + least(dtype) * n * (1 + size)
