"""Where the value of an expression lies: interval arithmetic over the expression as written.

Ranges come from the primitive table and from what is known of leaves. They hold at every index, for
all sizes, wherever the expression has a value.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import reduce
from types import MappingProxyType

from dsfc.expr.declarations import Constraint
from dsfc.expr.interval import (
    INF,
    NONNEG,
    POSITIVE,
    REALS,
    UNIT,
    Interval,
    exactly,
    inverse,
    plus,
    times,
)
from dsfc.expr.table import row
from dsfc.expr.tree import (
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

ONE = Interval(1.0, 1.0)
_ZERO = Interval(0.0, 0.0)
PROMISED: Mapping[Constraint, Interval] = MappingProxyType(
    {
        Constraint.NONE: REALS,
        Constraint.NONZERO: REALS,
        Constraint.POSITIVE: POSITIVE,
        Constraint.NONNEG: NONNEG,
        Constraint.UNIT: UNIT,
    }
)
"""Where the entries of a tensor lie, by what its declaration promises."""


def keeps(interval: Interval, constraint: Constraint) -> bool:
    """Returns whether all values of an interval are such as a declaration promises."""
    if constraint is Constraint.NONZERO:
        return 0.0 not in interval
    return interval.within(PROMISED[constraint])


_EXPONENTS = 64
"""Integer powers beyond this are taken through logarithms."""
_NOTHING: Mapping[str, Interval] = MappingProxyType({})


class Ranges:
    """Ranges of expressions; remembers what it has seen."""

    def __init__(
        self, known: Mapping[str, Interval] = _NOTHING, moduli: Mapping[str, Interval] = _NOTHING
    ) -> None:
        """Takes what is known of leaves; other leaves are any number.

        Args:
            known: ranges of real leaves by name.
            moduli: ranges of the absolute values of leaves by name.
        """
        self._known = known
        self._moduli = moduli
        self._done: dict[Expr, Interval] = {}

    def of(self, e: Expr) -> Interval:
        """Returns an interval that contains every value of a real expression."""
        if e not in self._done:
            self._done[e] = self.written(e)
        return self._done[e]

    def modulus(self, e: Expr) -> Interval:
        """Returns an interval that contains |x| for every value of an expression."""
        return row("abs").range(self.of(e)) if e.field is Field.REAL else self.size(e)

    def size(self, e: Expr) -> Interval:
        """Returns what the factors of an expression say of |x|."""
        match e:
            case Param(name=name) | Ref(name=name):
                return self._moduli.get(name, NONNEG)
            case Prim("cis"):
                return ONE
            case Prim("exp", (z,)):
                return row("exp").range(self.real_part(z))
            case Prim("conj", (arg,)) | Rename(arg=arg):
                return self.modulus(arg)
            case Mul(args):
                return reduce(times, map(self.modulus, args), ONE)
            case Div(numerator, denominator):
                return times(self.modulus(numerator), inverse(self.modulus(denominator)))
            case Pow(base, Num(value)) if value.denominator == 1:
                return power(self.modulus(base), value)
        return NONNEG

    def real_part(self, e: Expr) -> Interval:
        """Returns an interval that contains Re x for every value of an expression."""
        if e.field is Field.REAL:
            return self.of(e)
        match e:
            case Prim("cplx", (re, _)):
                return self.of(re)
            case Prim("conj", (arg,)) | Rename(arg=arg):
                return self.real_part(arg)
            case Add(args):
                return reduce(plus, map(self.real_part, args))
            case Mul(args):
                parts = [a for a in args if a.field is Field.COMPLEX]
                if len(parts) == 1:
                    real = (self.of(a) for a in args if a.field is Field.REAL)
                    return reduce(times, real, self.real_part(parts[0]))
            case Div(numerator, denominator) if denominator.field is Field.REAL:
                return times(self.real_part(numerator), inverse(self.of(denominator)))
        return REALS

    def written(self, e: Expr) -> Interval:
        """Returns the range of an expression as it is written, given those of its parts."""
        if e.field is Field.COMPLEX:
            return REALS
        match e:
            case Num(value):
                return exactly(value)
            case Size():
                return Interval(1.0, INF)
            case Ones():
                return ONE
            case Iota():
                return NONNEG
            case Param(name=name):
                return self._known.get(name, REALS)
            case Ref(name=name):
                interval = self._known.get(name, REALS)
                return interval if inside(e) else interval.hull(_ZERO)
            case Add(args):
                return reduce(plus, map(self.of, args))
            case Mul(args):
                return reduce(times, map(self.of, args))
            case Div(numerator, denominator):
                return times(self.of(numerator), inverse(self.of(denominator)))
            case Pow(base, Num(value)):
                return power(self.of(base), value)
            case Pow(base, exponent):
                return _general_power(self.of(base), self.of(exponent))
            case Rename(arg=arg):
                return self.of(arg)
            case Reduce(how=how, arg=arg):
                return _reduced(how, self.of(arg))
            case Series(order, arg):
                return _series(order, self.of(arg))
            case Prim("abs", (arg,)):
                return self.modulus(arg)
            case Prim("re", (arg,)):
                return self.real_part(arg)
            case Prim(name, args) if all(a.field is Field.REAL for a in args):
                return row(name).range(*map(self.of, args))
        return REALS


def power(base: Interval, exponent: Fraction) -> Interval:
    """Returns the range of x^exponent, where it has a value, for x in an interval."""
    if exponent.denominator != 1 or abs(exponent) > _EXPONENTS:
        if base.low < 0:
            return REALS
        interval = row("exp").range(times(exactly(exponent), row("log").range(base)))
        # The logarithm of 0 is a limit that is not taken, but 0 has powers: 0.
        zero = 0.0 in base and exponent > 0
        return interval.hull(_ZERO) if zero else interval
    if exponent < 0:
        return inverse(power(base, -exponent))
    if exponent % 2 == 0:
        base = row("abs").range(base)
    return reduce(times, [base] * int(exponent), ONE)


def inside(ref: Ref) -> bool:
    """Returns whether a name is read within the sequence; outside it is 0, whatever its range."""
    return ref.at is None or ref.at.lag == 0


def above(a: Interval, point: float) -> bool:
    """Returns whether all of an interval is above a point."""
    return a.low > point or (a.low == point and a.open_low)


def _general_power(base: Interval, exponent: Interval) -> Interval:
    """x^y for x > 0, as e^{y log x}."""
    if not above(base, 0.0):
        return REALS
    return row("exp").range(times(exponent, row("log").range(base)))


def _series(order: int, x: Interval) -> Interval:
    """Σ_{r ≤ order} x^r / r!: at least 1 where x ≥ 0, and positive everywhere for even orders.

    The derivative of an even order P is the series of P − 1, so at a least value x, where this is
    0, the series is x^P / P!, which is positive unless x = 0, where it is 1.
    """
    if x.low >= 0:
        return Interval(1.0, INF)
    return POSITIVE if order % 2 == 0 else REALS


def _reduced(how: Reduction, a: Interval) -> Interval:
    """Of one entry or more."""
    if how is not Reduction.SUM:
        return a
    if a.low >= 0:
        return Interval(a.low, INF, a.open_low)
    if a.high <= 0:
        return Interval(-INF, a.high, True, a.open_high)
    return REALS
