"""How steep the primitives are: a certified bound on |f'| over an interval, one row per primitive.

Where a row is missing a primitive has no bound of this kind: a jump, or a function of a complex
number. Bounds are rounded upward; by the mean value theorem |f(x) - f(y)| ≤ slope · |x - y| for all
x and y of the interval.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from dsfc.expr.interval import INF, Interval, inverse, plus, times
from dsfc.expr.interval import minus as opposite
from dsfc.expr.table import row

Slope = Callable[[Interval], float]


def _least(a: Interval) -> Interval:
    """The point of an interval that is nearest to 0, as an interval."""
    size = row("abs").range(a)
    return Interval(size.low, size.low)


def _exp(a: Interval) -> float:
    return row("exp").range(a).high


def _log(a: Interval) -> float:
    return inverse(a).high if a.low >= 0 else INF


def _log1p(a: Interval) -> float:
    return _log(plus(a, Interval(1.0, 1.0)))


def _sqrt(a: Interval) -> float:
    if a.low < 0:
        return INF
    return times(Interval(0.5, 0.5), inverse(row("sqrt").range(a))).high


def _jump(a: Interval) -> float:
    return 0.0 if a.low > 0 or a.high < 0 else INF


def _sigmoid(a: Interval) -> float:
    """σ' = σ (1 - σ) falls with |x|."""
    x = _least(a)
    return times(row("sigmoid").range(x), row("sigmoid").range(opposite(x))).high


def _tanh(a: Interval) -> float:
    """1 - tanh² falls with |x|."""
    y = row("tanh").range(_least(a))
    return min(plus(Interval(1.0, 1.0), opposite(times(y, y))).high, 1.0)


def _relu(a: Interval) -> float:
    return 0.0 if a.high <= 0 else 1.0


def _elu(a: Interval) -> float:
    return 1.0 if a.high >= 0 else _exp(a)


def _constant(value: float) -> Slope:
    return lambda a: value


SLOPES: Mapping[str, Slope] = MappingProxyType({
    "exp": _exp,
    "log": _log,
    "log1p": _log1p,
    "expm1": _exp,
    "exprel": lambda a: row("exprel_slope").range(a).high,  # exprel is convex
    "exprel_slope": lambda a: row("exprel_slope").range(a).high,  # ∫ t² e^(tx) ≤ ∫ t e^(tx)
    "sqrt": _sqrt,
    "abs": _constant(1.0),
    "sign": _jump,
    "step": _jump,
    "sin": _constant(1.0),
    "cos": _constant(1.0),
    "tanh": _tanh,
    "erf": _constant(1.1283791670955128),  # 2 / √π
    "sigmoid": _sigmoid,
    "softplus": lambda a: row("sigmoid").range(a).high,
    "logsigmoid": lambda a: row("sigmoid").range(opposite(a)).high,
    "relu": _relu,
    "elu": _elu,
    "silu": _constant(1.0999),  # its largest slope is 1.09983…, at 2.3994
    "gelu": _constant(1.1290),  # its largest slope is 1.12890…, at √2
    "max": _constant(1.0),  # in each argument, and together where both move by no more than that
    "min": _constant(1.0),
    "re": _constant(1.0),
    "im": _constant(1.0),
    "conj": _constant(1.0),
    "cplx": _constant(1.0),
    "cis": _constant(1.0),
    "stop_gradient": _constant(1.0),
    "softmax": _constant(0.5),  # of the largest along the axis: Σ_j |∂_j p_k| = 2 p_k (1 - p_k)
})  # fmt: skip
"""Name of a primitive → slope; of several arguments in each."""


def slope(name: str, a: Interval) -> float:
    """Returns a bound on |f'| over an interval; infinity where none is known."""
    bound = SLOPES.get(name)
    return INF if bound is None else bound(a)
