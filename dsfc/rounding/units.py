"""What is assumed of the arithmetic of a dtype: rounding, ranges, elementary functions, sums."""

from __future__ import annotations

import torch

ASSUMED = (
    "arithmetic rounds to nearest; a subnormal result may become 0 except in float16",
    "exp, log, sigmoid, tanh and their like err by at most 4 units in the last place of float32",
    "sums and products of matrices in two bytes are added up in float32, in any order, and rounded "
    "once; float32 is multiplied as float32, not as TF32",
    "a Fourier transform of N numbers errs by at most 8 u log2(N) of its Euclidean length",
)
"""The assumptions, in words."""

_DIGITS = {torch.float64: 53, torch.float32: 24, torch.float16: 11, torch.bfloat16: 8}

ULPS = 4
"""Units in the last place by which an elementary function is off, at most."""

SLACK = 2.0**-50
"""By what share of their size ends of intervals are moved outward: float64 computes them."""


def real(dtype: torch.dtype) -> torch.dtype:
    """Returns the dtype of the parts of a number."""
    return dtype.to_real() if dtype.is_complex else dtype


def wide(dtype: torch.dtype) -> torch.dtype:
    """Returns the dtype that sums and functions are computed in."""
    return torch.promote_types(dtype, torch.float32)


def unit(dtype: torch.dtype) -> float:
    """Returns the unit roundoff u: a rounded number is off by at most this share of it."""
    return 2.0 ** -_DIGITS[real(dtype)]


def least(dtype: torch.dtype) -> float:
    """Returns by how much a result is off besides where it is too small for the dtype."""
    dtype = real(dtype)
    tiny = float(torch.finfo(dtype).tiny)
    return tiny * unit(dtype) * 2 if dtype is torch.float16 else tiny


def largest(dtype: torch.dtype) -> float:
    """Returns the largest finite number of a dtype."""
    return float(torch.finfo(real(dtype)).max)


def gamma(n: float, dtype: torch.dtype) -> float:
    """Returns γ_n = n u / (1 - n u), or infinity where n u is not below 1/2."""
    nu = n * unit(dtype)
    return nu / (1 - nu) * (1 + SLACK) if nu < 0.5 else float("inf")
