"""Intervals of real numbers with open or closed ends, rounded outward.

They carry the ranges of the primitive table. Every operation returns an interval that contains the
exact set of values: a bound that is not exact in double precision is moved away from the set.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

INF = math.inf


def below(x: float) -> float:
    """Returns the next double towards -∞."""
    return math.nextafter(x, -INF)


def above(x: float) -> float:
    """Returns the next double towards +∞."""
    return math.nextafter(x, INF)


@dataclass(frozen=True, slots=True)
class Interval:
    """The reals between `low` and `high`; an infinite end is open whatever its flag.

    Attributes:
        low: lower end, may be -inf.
        high: upper end, may be inf.
        open_low: the lower end is not taken.
        open_high: the upper end is not taken.
    """

    low: float
    high: float
    open_low: bool = False
    open_high: bool = False

    def __contains__(self, x: float) -> bool:
        """Returns whether x is a point of the interval."""
        over = x > self.low or (x == self.low and not self.open_low)
        under = x < self.high or (x == self.high and not self.open_high)
        return over and under

    def within(self, other: Interval) -> bool:
        """Returns whether every point of this interval lies in `other`."""
        low = self.low > other.low or (
            self.low == other.low and (self.open_low or not other.open_low)
        )
        high = self.high < other.high or (
            self.high == other.high and (self.open_high or not other.open_high)
        )
        return (low or self.low == other.low == -INF) and (high or self.high == other.high == INF)

    def meet(self, other: Interval) -> Interval:
        """Returns the intersection; the caller knows that it is not empty."""
        low = max((self.low, self.open_low), (other.low, other.open_low))
        high = min((self.high, not self.open_high), (other.high, not other.open_high))
        return Interval(low[0], high[0], low[1], not high[1])

    def hull(self, other: Interval) -> Interval:
        """Returns the smallest interval that contains both."""
        low = min((self.low, self.open_low), (other.low, other.open_low))
        high = max((self.high, not self.open_high), (other.high, not other.open_high))
        return Interval(low[0], high[0], low[1], not high[1])


REALS = Interval(-INF, INF)
POSITIVE = Interval(0.0, INF, open_low=True)
NONNEG = Interval(0.0, INF)
UNIT = Interval(0.0, 1.0, open_low=True, open_high=True)


def exactly(value: Fraction | int) -> Interval:
    """Returns the interval of one number, widened when the number is not a double."""
    x = float(value)
    if math.isinf(x):
        return REALS
    if Fraction(x) == value:
        return Interval(x, x)
    return Interval(below(x), above(x))


def minus(a: Interval) -> Interval:
    """Returns {-x}."""
    return Interval(-a.high, -a.low, a.open_high, a.open_low)


def plus(a: Interval, b: Interval) -> Interval:
    """Returns an interval around {x + y}."""
    low, high = a.low + b.low, a.high + b.high
    return Interval(
        low if _sum_exact(a.low, b.low) else below(low),
        high if _sum_exact(a.high, b.high) else above(high),
        a.open_low or b.open_low,
        a.open_high or b.open_high,
    )


def _sum_exact(x: float, y: float) -> bool:
    if math.isinf(x) or math.isinf(y):
        return True
    s = x + y
    return not math.isinf(s) and Fraction(x) + Fraction(y) == Fraction(s)


def times(a: Interval, b: Interval) -> Interval:
    """Returns an interval around {x · y} for independent x and y."""
    corners = [
        _corner(x, x_open, y, y_open)
        for x, x_open in ((a.low, a.open_low), (a.high, a.open_high))
        for y, y_open in ((b.low, b.open_low), (b.high, b.open_high))
    ]
    low = min(corners, key=lambda c: (c[0], c[2]))
    high = max(corners, key=lambda c: (c[1], not c[2]))
    return Interval(low[0], high[1], low[2], high[2])


def _corner(x: float, x_open: bool, y: float, y_open: bool) -> tuple[float, float, bool]:
    """The product of two ends as (rounded down, rounded up, whether it is not taken)."""
    if x == 0 or y == 0:
        # The limit of 0 · ∞ along a corner is 0: the factor 0 is exact. 0 is taken as soon as
        # a zero end is closed, whatever the other factor.
        taken = (x == 0 and not x_open) or (y == 0 and not y_open)
        return 0.0, 0.0, not taken
    p = x * y
    if math.isinf(x) or math.isinf(y):
        return p, p, True
    if not math.isinf(p) and Fraction(x) * Fraction(y) == Fraction(p):
        return p, p, x_open or y_open
    return below(p), above(p), x_open or y_open


def inverse(a: Interval) -> Interval:
    """Returns an interval around {1 / x}; all reals when 0 may be a value."""
    if a.low >= 0 and (a.low > 0 or a.open_low):
        low, high = _quotient(a.high), _quotient(a.low)
        return Interval(low[0], high[1], a.open_high or math.isinf(a.high), a.open_low)
    if a.high <= 0 and (a.high < 0 or a.open_high):
        return minus(inverse(minus(a)))
    return REALS


def _quotient(x: float) -> tuple[float, float]:
    if x == 0:
        return INF, INF
    if math.isinf(x):
        return 0.0, 0.0
    q = 1.0 / x
    if math.isinf(q):
        return math.nextafter(q, 0.0), q
    if Fraction(x) * Fraction(q) == 1:
        return q, q
    return max(below(q), 0.0), above(q)


def increasing(
    function: Callable[[float], float],
    into: Interval,
    exact: dict[float, float] | None = None,
    ulps: int = 4,
) -> Callable[[Interval], Interval]:
    """Returns the range rule of a strictly increasing function.

    Args:
        function: the function in double precision, finite on finite points of its domain.
        into: the exact range of the function over its whole domain; infinite ends map to its ends.
        exact: points whose value is known exactly.
        ulps: bound on the error of `function`, in units in the last place.
    """
    known = exact or {}

    def end(x: float, step: Callable[[float], float], limit: float) -> float:
        if x in known:
            return known[x]
        if math.isinf(x):
            return limit
        try:
            y = function(x)
        except (OverflowError, ValueError):
            return limit
        for _ in range(ulps):
            y = step(y)
        return y

    def rule(a: Interval) -> Interval:
        return Interval(
            end(a.low, below, into.low),
            end(a.high, above, into.high),
            a.open_low or (math.isinf(a.low) and into.open_low),
            a.open_high or (math.isinf(a.high) and into.open_high),
        ).meet(into)

    return rule
