"""How close two results must be, and what is said where they are not.

Two rules, none with a tolerance picked by hand for a mixer:

- float64: max|a - b| / max|b| of each tensor is at most `EXACT`, whatever the mixer;
- lower precision: the error is at most `FORWARD` times (`BACKWARD` times for gradients) the error
  that the plain torch form makes in the same precision, both measured against float64 and
  summed over a few draws.

The second is the rule of FlashAttention's tests (Dao 2023): it needs no knowledge of conditioning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import torch
from torch import Tensor

EXACT = 1e-11
"""Largest relative error in float64."""

ROUNDING = 1e-13
"""Largest relative error in float64 between two runs that differ in memory layout alone."""

FORWARD = 2.0
"""How many times the plain form's error an output may have."""

BACKWARD = 3.0
"""How many times the plain form's error a gradient may have."""


class BrokenPromiseError(Exception):
    """A module does not do what it promises; the message says what, in one line."""


NEGLIGIBLE = 1e-3
"""A tensor smaller than this share of the largest one beside it is measured against that share.

A gradient that vanishes identically (that of the queries of a ratio, with one token) is rounding
noise in both; measured against itself it would never agree.
"""


def relative_error(got: Tensor, want: Tensor, floor: float = 0.0) -> float:
    """Returns max|got - want| / max|want|, in float64.

    Infinite where shapes differ, where NaN or an infinity stands in one of them only, and where
    `want` is all zeros and `got` is not.

    Args:
        got: a result.
        want: what it is measured against, any shape.
        floor: the least that is divided by.
    """
    if got.shape != want.shape:
        return float("inf")
    if want.numel() == 0:
        return 0.0
    a, b = _wide(got), _wide(want)
    finite = torch.isfinite(b)
    if not torch.equal(torch.isfinite(a), finite):
        return float("inf")
    odd = ~finite
    if not torch.equal(torch.nan_to_num(a[odd], nan=0.5), torch.nan_to_num(b[odd], nan=0.5)):
        return float("inf")
    a, b = a[finite], b[finite]
    if b.numel() == 0:
        return 0.0
    difference, scale = (a - b).abs().max().item(), max(b.abs().max().item(), floor)
    if difference == 0.0:
        return 0.0
    return difference / scale if scale else float("inf")


def agree(
    got: Mapping[str, Tensor], want: Mapping[str, Tensor], tolerance: float, where: str
) -> float:
    """Checks that named results agree, and returns the largest relative error.

    Args:
        got: results.
        want: what they are measured against; the same names.
        tolerance: largest relative error of each tensor.
        where: says in a message which case this is.

    Raises:
        BrokenPromiseError: names differ, or an error is larger than the tolerance.
    """
    if set(got) != set(want):
        raise BrokenPromiseError(f"{where}: gives {', '.join(got)}, not {', '.join(want)}")
    worst, floor = 0.0, NEGLIGIBLE * max((largest(x) for x in want.values()), default=0.0)
    for name, value in want.items():
        if got[name].shape != value.shape:
            shapes = f"shape {list(got[name].shape)}, not {list(value.shape)}"
            raise BrokenPromiseError(f"{where}: {name} has {shapes}")
        error = relative_error(got[name], value, floor)
        if not error <= tolerance:
            problem = f"{name} is off by {error:.1e}, more than {tolerance:g}"
            raise BrokenPromiseError(f"{where}: {problem}")
        worst = max(worst, error)
    return worst


def worst_of(error: float) -> str:
    """Says what the largest relative error was."""
    return f"largest relative error {error:.1e}" if error else "no difference at all"


def largest(x: Tensor) -> float:
    """Returns the largest magnitude among a tensor's finite entries, 0 where there is none."""
    wide = _wide(x)
    finite = wide[torch.isfinite(wide)]
    return finite.abs().max().item() if finite.numel() else 0.0


def same(got: Tensor, want: Tensor, what: str) -> None:
    """Checks that two tensors are equal bit for bit, NaN included.

    Raises:
        BrokenPromiseError: they are not.
    """
    got, want = got.detach(), want.detach()
    if got.dtype != want.dtype or got.shape != want.shape:
        kinds = f"{got.dtype} {list(got.shape)}, not {want.dtype} {list(want.shape)}"
        raise BrokenPromiseError(f"{what}: {kinds}")
    if not torch.equal(torch.isnan(got), torch.isnan(want)) or not torch.equal(
        torch.nan_to_num(got), torch.nan_to_num(want)
    ):
        raise BrokenPromiseError(f"{what}: not the same bits")


@dataclass(frozen=True, slots=True)
class Error:
    """How far one result is from the truth.

    Attributes:
        size: max|got - truth|.
        scale: max|truth|, or the share of the largest tensor beside it that counts at least.
    """

    size: float
    scale: float


def errors(got: Mapping[str, Tensor], truth: Mapping[str, Tensor]) -> dict[str, Error]:
    """Returns the error of each named result.

    Args:
        got: results in low precision.
        truth: the same in float64.
    """
    floor = NEGLIGIBLE * max((largest(x) for x in truth.values()), default=0.0)
    errors_by_part = {}
    for name, value in truth.items():
        scale = max(largest(value), floor)
        share = relative_error(got[name], value, floor)
        errors_by_part[name] = Error(share * scale if scale else share, scale)
    return errors_by_part


def bar_share(
    got: Sequence[Mapping[str, Error]],
    plain: Sequence[Mapping[str, Error]],
    dtype: torch.dtype,
    where: str,
) -> float:
    """Checks errors in low precision and returns the largest share of what is allowed.

    Errors are summed over draws: that of a single one hangs on one or two entries, in both forms,
    and their ratio is a lottery. A tensor of two entries stays one: the plain form's typical error
    over outputs, or over gradients, is always granted, and so is half a unit in the last place.

    Args:
        got: the errors of each draw, by name; those named `gradient …` may be `BACKWARD` times
            the plain form's, `y` and those named `last …` may be `FORWARD` times.
        plain: the plain torch form's, of the same draws in the same precision.
        dtype: the precision.
        where: says in a message which case this is.

    Raises:
        BrokenPromiseError: an error is larger than allowed.
    """
    worst = 0.0
    relative, plainly = _summed(got), _summed(plain)
    for factor, start in ((BACKWARD, "gradient"), (FORWARD, ("y", "last"))):
        names = [name for name in plainly if name.startswith(start)]
        typical = median(plainly[name] for name in names)
        for name in names:
            allowed = max(plainly[name], typical, torch.finfo(dtype).eps / 2)
            if not relative[name] <= factor * allowed:
                times = f"{relative[name]:.1e}, {relative[name] / allowed:.1f} times plain torch"
                raise BrokenPromiseError(f"{where}: {name} is off by {times}")
            worst = max(worst, relative[name] / (factor * allowed))
    return worst


def _summed(draws: Sequence[Mapping[str, Error]]) -> dict[str, float]:
    """The error of each result relative to its size, both summed over the draws."""
    sums = {}
    for name in draws[0]:
        size, scale = sum(d[name].size for d in draws), sum(d[name].scale for d in draws)
        sums[name] = size / scale if size and scale else size
    return sums


def _wide(x: Tensor) -> Tensor:
    return x.detach().to(torch.complex128 if x.is_complex() else torch.float64)
