"""Sets of numbers in which values lie, for all inputs, parameters, indices and sizes."""

from __future__ import annotations

from dataclasses import dataclass

from dsfc.expr.interval import Interval
from dsfc.expr.ranges import Ranges
from dsfc.expr.table import row
from dsfc.expr.tree import Expr, Field
from dsfc.trusted import balls
from dsfc.trusted.balls import Complex, Real


@dataclass(frozen=True, slots=True)
class Region:
    """A set of numbers that is symmetric under conjugation.

    Attributes:
        real: whether the numbers are real; else the interval is one of absolute values.
        interval: the values, or their absolute values.
    """

    real: bool
    interval: Interval

    @property
    def size(self) -> Interval:
        """The absolute values."""
        return row("abs").range(self.interval) if self.real else self.interval

    def disjoint(self, other: Region) -> bool:
        """Returns whether the two have no number in common."""
        if self.real and other.real:
            return _disjoint(self.interval, other.interval)
        return _disjoint(self.size, other.size)

    def excludes(self, value: Complex) -> bool:
        """Returns whether no number between the bounds of a value is one of these."""
        if not self.real:
            size = _absolute(value)
            return _outside(size, self.interval)
        imaginary = value.im.low > 0 or value.im.high < 0
        return imaginary or _outside(value.re, self.interval)


def _disjoint(a: Interval, b: Interval) -> bool:
    return _before(a, b) or _before(b, a)


def _before(a: Interval, b: Interval) -> bool:
    return a.high < b.low or (a.high == b.low and (a.open_high or b.open_low))


def _outside(x: Real, interval: Interval) -> bool:
    """Whether bounds have no point of an interval; a fraction is compared with a double exactly."""
    under = x.high < interval.low or (x.high == interval.low and interval.open_low)
    over = x.low > interval.high or (x.low == interval.high and interval.open_high)
    return under or over


def _absolute(value: Complex) -> Real:
    if value.is_real:
        return balls.absolute(value.re)
    parts = [balls.absolute(p) for p in (value.re, value.im)]
    return balls.sqrt(parts[0] * parts[0] + parts[1] * parts[1])


def region_of(e: Expr, ranges: Ranges) -> Region:
    """Returns a region that holds every value of an expression."""
    if e.field is Field.REAL:
        return Region(True, ranges.of(e))
    return Region(False, ranges.modulus(e))
