"""Rules of functions of one real number: range, slope, and the error of the library's function.

A function moves the error of its argument by at most its largest slope between the exact and the
computed argument. Where exponentials are steep the bound takes the exponential of the error itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from dsfc.rounding.arithmetic import Fresh, rounded
from dsfc.rounding.enclosure import Enclosure
from dsfc.rounding.units import ULPS, unit, wide

_SILU_LEAST = 0.2785
"""x σ(x) is nowhere below minus this."""


@dataclass(frozen=True, slots=True)
class Function:
    """What is known of a function.

    Attributes:
        range: ends of an interval → ends of an interval that holds all values.
        passed: (low, high, error) → how far apart values are at arguments as far apart as that.
        least: the function's absolute error where its value may be too small for the dtype.
        pole: whether arguments at or below 0 have no value.
    """

    range: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
    passed: Callable[[Tensor, Tensor, Tensor], Tensor]
    least: float = 0.0
    pole: bool = False


def _rising(f: Callable[[Tensor], Tensor]) -> Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]:
    return lambda a, b: (f(a), f(b))


def _nearest(a: Tensor, b: Tensor, e: Tensor) -> Tensor:
    """The argument nearest to 0 that either number may be."""
    zero = torch.zeros_like(a)
    return torch.maximum(torch.maximum(a - e, -(b + e)), zero)


def _exp_passed(a: Tensor, b: Tensor, e: Tensor) -> Tensor:
    out = torch.exp(b) * torch.expm1(e)
    return torch.where((e == 0) | (b == -torch.inf), torch.zeros_like(out), out)


def _silu_range(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """X σ(x) falls to its least value at -1.278, and rises from there."""
    ends = [x * torch.sigmoid(x) for x in (a, b)]
    low = torch.minimum(*ends)
    through = (a < -1.27) & (b > -1.29)
    low = torch.where(through, torch.minimum(low, torch.full_like(low, -_SILU_LEAST)), low)
    high = torch.maximum(*ends)
    # Left of -1.278 the function falls, from 0.
    return low, high


def _sine_range(f: Callable[[Tensor], Tensor]) -> Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]:
    def ranged(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        middle, radius = f((a + b) / 2), (b - a) / 2
        return (middle - radius).clamp(min=-1), (middle + radius).clamp(max=1)

    return ranged


def _steep(slope: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Callable[..., Tensor]:
    """The largest slope times the error, 0 where there is none."""

    def passed(a: Tensor, b: Tensor, e: Tensor) -> Tensor:
        return torch.where(e == 0, torch.zeros_like(e), slope(a, b, e) * e)

    return passed


def _bell(x: Tensor) -> Tensor:
    """The slope of the logistic function."""
    s = torch.sigmoid(-x.abs())
    return s * (1 - s)


FUNCTIONS: dict[str, Function] = {
    "exp": Function(_rising(torch.exp), _exp_passed),
    "expm1": Function(_rising(torch.expm1), _exp_passed),
    "log": Function(
        _rising(torch.log), _steep(lambda a, b, e: 1 / (a - e).clamp(min=0)), pole=True
    ),
    "log1p": Function(_rising(torch.log1p), _steep(lambda a, b, e: 1 / (1 + a - e).clamp(min=0))),
    "sqrt": Function(
        _rising(torch.sqrt),
        # |√x - √x'| is at most both of these.
        lambda a, b, e: torch.minimum(e.sqrt(), e / (a.clamp(min=0).sqrt() + 1e-300)),
    ),
    "sigmoid": Function(
        _rising(torch.sigmoid), _steep(lambda a, b, e: _bell(_nearest(a, b, e))), 1e-36
    ),
    "tanh": Function(
        _rising(torch.tanh),
        _steep(lambda a, b, e: 1 - torch.tanh(_nearest(a, b, e)) ** 2 * (1 - 1e-12)),
    ),
    "log_sigmoid_forward": Function(
        _rising(torch.nn.functional.logsigmoid), _steep(lambda a, b, e: torch.sigmoid(e - a))
    ),
    "softplus": Function(
        _rising(lambda x: torch.logaddexp(x, torch.zeros_like(x))),
        _steep(lambda a, b, e: torch.sigmoid(b + e)),
    ),
    "silu": Function(_silu_range, _steep(lambda a, b, e: torch.full_like(e, 1.1)), 1e-36),
    "elu": Function(
        _rising(torch.nn.functional.elu),
        _steep(lambda a, b, e: torch.exp((b + e).clamp(max=0))),
        2.0**-22,
    ),
    "relu": Function(_rising(torch.relu), _steep(lambda a, b, e: torch.ones_like(e))),
    "sin": Function(_sine_range(torch.sin), _steep(lambda a, b, e: torch.ones_like(e)), 2.0**-22),
    "cos": Function(_sine_range(torch.cos), _steep(lambda a, b, e: torch.ones_like(e)), 2.0**-22),
}
"""By the name of PyTorch's operator."""


def apply(name: str, x: Enclosure, dtype: torch.dtype) -> tuple[Enclosure, Fresh, Tensor]:
    """Returns a function of an enclosure, its rounding, and where it may have no value."""
    known = FUNCTIONS[name]
    a, b, e = x.parts
    nowhere = (a - e <= 0) if known.pole else torch.zeros_like(a, dtype=torch.bool)
    if name == "sqrt":
        nowhere = a - e < 0
    if name == "log1p":
        nowhere = a - e <= -1
    low, high = known.range(a, b)
    share = 2 * ULPS * unit(wide(dtype))
    # The platform's own float64 functions may be off by a few units in the last place.
    size = torch.maximum(low.abs(), high.abs())
    size = torch.where(size.isinf(), torch.zeros_like(size), size)
    passed = known.passed(a, b, e) * (1 + 2.0**-40)
    low, high = low - size * 2.0**-48, high + size * 2.0**-48
    if name in ("exp", "sigmoid", "softplus", "sqrt"):
        low = low.clamp(min=0)
    out, fresh = rounded(low, high, passed, dtype, share)
    return out, fresh + known.least, nowhere


def bounded(x: Enclosure, least: float | None, most: float | None) -> Enclosure:
    """The clamp between two numbers: it moves errors by no more than they are."""
    a, b, e = x.parts
    return Enclosure((a.clamp(least, most), b.clamp(least, most), e.clone()), x.dtype)


def length(
    x: Enclosure, dims: list[int] | None, keep: bool, dtype: torch.dtype
) -> tuple[Enclosure, Fresh]:
    """The Euclidean length along axes."""
    axes = list(range(x.ndim)) if dims is None else dims
    a, b, e = x.parts
    inside = torch.where((a <= 0) & (b >= 0), torch.zeros_like(a), torch.minimum(a.abs(), b.abs()))
    largest = torch.maximum(a.abs(), b.abs())
    terms = 1
    for dim in axes:
        terms *= x.shape[dim]
    low, high, passed = ((part**2).sum(axes, keepdim=keep).sqrt() for part in (inside, largest, e))
    nu = (terms + 8) * unit(wide(dtype))
    out, fresh = rounded(low, high, passed * (1 + 2.0**-40), dtype, nu / (1 - nu))
    # Squares that are too small become 0.
    return out, fresh + (terms * 1.2e-38) ** 0.5


def normalized(x: Enclosure, dim: int, floor: float, dtype: torch.dtype) -> tuple[Enclosure, Fresh]:
    """X over the larger of its length along an axis and a floor; no entry is beyond ±1."""
    (a, b, e), size = x.parts, length(x, [dim], True, x.dtype)[0]
    shortest, longest = size.parts[0].clamp(min=floor), size.parts[1].clamp(min=floor)
    low = torch.where(a >= 0, a / longest, a / shortest).clamp(-1, 1)
    high = torch.where(b >= 0, b / shortest, b / longest).clamp(-1, 1)
    # Both lengths are at least the floor, so x moves by the errors over one of them, and the
    # quotient by as much again; two vectors in the unit ball are no farther apart than 2.
    moved = 2 * (e**2).sum(dim, keepdim=True).sqrt() / shortest
    passed = torch.minimum(moved.expand(a.shape), torch.full_like(a, 2.0))
    nu = (x.shape[dim] + 12) * unit(wide(dtype)) + 3 * unit(dtype)  # the length is rounded too
    out, fresh = rounded(low, high, passed, dtype, nu / (1 - nu))
    return out, fresh + nu + 1e-6 * (floor < 1e-30)
