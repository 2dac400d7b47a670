"""Where the value of an expression lies, for all inputs, parameters, indices and sizes.

Plain interval arithmetic over the expression as written, with the ranges of the primitive table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce

from dsfc.check_proof import balls
from dsfc.check_proof.balls import Complex, Real
from dsfc.primitives.expr import (
    Add,
    Div,
    Expr,
    Field,
    Iota,
    Mul,
    Num,
    Ones,
    Param,
    Pow,
    Prim,
    Reduce,
    Reduction,
    Ref,
    Rename,
    Series,
    Size,
)
from dsfc.primitives.interval import (
    INF,
    NONNEG,
    POSITIVE,
    REALS,
    Interval,
    exactly,
    inverse,
    plus,
    times,
)
from dsfc.primitives.table import row

_EXPONENTS = 64
"""Integer powers beyond this are not multiplied out."""


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

    def apart(self, other: Region) -> bool:
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


class Ranges:
    """Ranges of expressions; remembers what it has seen.

    Args:
        known: regions of inputs, parameters and buffers by name; others are any number.
    """

    def __init__(self, known: Mapping[str, Region]) -> None:
        """Takes what is known of leaves."""
        self._known = known
        self._done: dict[Expr, Interval] = {}

    def region(self, e: Expr) -> Region:
        """Returns a region that holds every value of an expression."""
        if e.field is Field.REAL:
            return Region(True, self.of(e))
        return Region(False, self.size(e))

    def of(self, e: Expr) -> Interval:
        """Returns an interval that holds every value of a real expression."""
        if e not in self._done:
            self._done[e] = REALS if e.field is not Field.REAL else self._of(e)
        return self._done[e]

    def _of(self, e: Expr) -> Interval:
        match e:
            case Num(value):
                return exactly(value)
            case Size():
                return Interval(1.0, INF)
            case Ones():
                return Interval(1.0, 1.0)
            case Iota():
                return NONNEG
            case Param(name=name) | Ref(name=name):
                known = self._known.get(name)
                return known.interval if known is not None and known.real else REALS
            case Add(args):
                return reduce(plus, map(self.of, args), exactly(0))
            case Mul(args):
                return reduce(times, map(self.of, args), exactly(1))
            case Div(num, den):
                return times(self.of(num), inverse(self.of(den)))
            case Pow(base, Num(value)):
                return _power(self.of(base), value)
            case Rename(arg=arg):
                return self.of(arg)
            case Reduce(how=how, arg=arg):
                return _reduced(how, self.of(arg))
            case Series(order, arg):
                return self._series(order, self.of(arg))
            case Prim("abs", (arg,)):
                return self.size(arg)
            case Prim("re", (arg,)):
                return self.real_part(arg)
            case Prim(name, args) if all(a.field is Field.REAL for a in args):
                return row(name).range(*map(self.of, args))
        return REALS

    def _series(self, order: int, x: Interval) -> Interval:
        """Σ_{r ≤ order} x^r / r!: at least 1 where x is not negative; even orders are positive."""
        if x.low >= 0:
            return Interval(1.0, INF)
        return POSITIVE if order % 2 == 0 else REALS

    def size(self, e: Expr) -> Interval:
        """Returns an interval that holds |x| for every value of an expression."""
        if e.field is Field.REAL:
            return row("abs").range(self.of(e))
        match e:
            case Param(name=name) | Ref(name=name):
                known = self._known.get(name)
                return NONNEG if known is None else known.size
            case Prim("cis", _):
                return Interval(1.0, 1.0)
            case Prim("exp", (arg,)):
                return row("exp").range(self.real_part(arg))
            case Prim("conj", (arg,)) | Rename(arg=arg):
                return self.size(arg)
            case Mul(args):
                return reduce(times, map(self.size, args), exactly(1))
            case Div(num, den):
                return times(self.size(num), inverse(self.size(den)))
            case Pow(base, Num(value)) if value.denominator == 1:
                return _power(self.size(base), value)
        return NONNEG

    def real_part(self, e: Expr) -> Interval:
        """Returns an interval that holds Re x for every value of an expression."""
        if e.field is Field.REAL:
            return self.of(e)
        match e:
            case Prim("cplx", (re, _)):
                return self.of(re)
            case Prim("conj", (arg,)) | Rename(arg=arg):
                return self.real_part(arg)
            case Add(args):
                return reduce(plus, map(self.real_part, args), exactly(0))
            case Mul(args):
                parts = [a for a in args if a.field is not Field.REAL]
                if len(parts) == 1:
                    rest = (self.of(a) for a in args if a.field is Field.REAL)
                    return reduce(times, rest, self.real_part(parts[0]))
            case Div(num, den) if den.field is Field.REAL:
                return times(self.real_part(num), inverse(self.of(den)))
        return REALS


def _power(base: Interval, exponent: Fraction) -> Interval:
    if exponent.denominator != 1 or abs(exponent) > _EXPONENTS:
        if not (base.low > 0 or (base.low == 0 and base.open_low)):
            return REALS
        return row("exp").range(times(exactly(exponent), row("log").range(base)))
    if exponent < 0:
        return inverse(_power(base, -exponent))
    if exponent % 2 == 0:
        base = row("abs").range(base)
    return reduce(times, [base] * int(exponent), exactly(1))


def _reduced(how: Reduction, a: Interval) -> Interval:
    if how is not Reduction.SUM:
        return a
    # One term or more.
    if a.low >= 0:
        return Interval(a.low, INF, a.open_low)
    if a.high <= 0:
        return Interval(-INF, a.high, False, a.open_high)
    return REALS
