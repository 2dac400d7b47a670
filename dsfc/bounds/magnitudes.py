"""Rule "magnitude": how large an expression is, as a form in lags and in unknown bounds of states.

|a + b| ≤ |a| + |b|, |a b| = |a| |b|, |a / b| ≤ |a| / min |b|; a sum over the past is at most the
sum of the magnitudes of its summand over all lags, a geometric one where the summand decays.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import reduce

from dsfc.bounds.form import ONE, Form, constant, decaying, first_token, total, unknown, up
from dsfc.bounds.pair import Get, Magnitude, OneMixer, Pair, Range
from dsfc.bounds.ranges import to_fraction
from dsfc.bounds.sums import VAR, summation
from dsfc.expr.interval import Interval, inverse
from dsfc.expr.over_time import Lag, Past, Run
from dsfc.expr.reserved_names import FIRST, TIME
from dsfc.expr.table import row
from dsfc.expr.tree import (
    Add,
    Bound,
    Div,
    Expr,
    Field,
    Fir,
    Map,
    Mul,
    Now,
    Num,
    Pow,
    Prim,
    Reduce,
    Reduction,
    Ref,
    Rename,
    children,
)
from dsfc.trusted.entries import Obstacle


def magnitude(subject: Magnitude, pair: Pair, get: Get) -> Form:
    """Returns a form that is never below the absolute value of an expression.

    Raises:
        Obstacle: there is none.
    """
    side, e = pair.side(subject.second), subject.e

    def part(x: Expr) -> Form:
        out = get(Magnitude(subject.second, x, subject.open))
        assert isinstance(out, Form)
        return out

    def at_most(x: Expr) -> Fraction:
        out = get(Range(subject.second, x))
        assert isinstance(out, Interval)
        return largest(out)

    if not structured(e, side, subject.open):
        return constant(at_most(e))
    match e:
        case Ref():
            return _named(subject, e, pair, get)
        case Add(args):
            return total(map(part, args))
        case Mul(args):
            return reduce(lambda x, y: x * y, map(part, args), ONE)
        case Div(numerator, denominator):
            below = get(Range(subject.second, denominator))
            assert isinstance(below, Interval)
            return part(numerator).times(reciprocal(below))
        case Reduce(Reduction.SUM, axis, arg):
            return part(arg).times(pair.size(axis))
        case Reduce(arg=arg) | Rename(arg=arg):
            return part(arg)
        case Map(map=linear, arg=arg):
            each = array_size(side, linear.name, at_most)
            return part(arg).times(up(each * pair.count(linear.source)))
        case Prim("re" | "im" | "conj" | "abs" | "stop_gradient", (arg,)):
            return part(arg)
        case Prim("max" | "min", args) if all(x.field is Field.REAL for x in args):
            return total(map(part, args))
        case Prim("tanh" | "sin" | "relu" | "elu" | "silu" | "gelu", (arg,)) if (
            arg.field is Field.REAL
        ):
            return part(arg)
        case Pow(base, Lag() as lag):
            return lagged(at_most(base), lag)
        case Pow(base, Num(value)) if value.denominator == 1 and 1 <= value <= 4:
            return reduce(lambda x, y: x * y, [part(base)] * int(value))
        case Run():
            return lagged(at_most(e.arg), run_lag(e))
    past_sum = summation(e, side, pair.sizes)
    if past_sum is None:
        return constant(at_most(e))
    longest = pair.domain.longest
    last = past_sum.last if longest is None else min(longest - 1, _or(past_sum.last, longest))
    return part(past_sum.body).summed(VAR, past_sum.first, last)


def _or(x: int | None, otherwise: int) -> int:
    return otherwise if x is None else x


def _named(subject: Magnitude, e: Ref, pair: Pair, get: Get) -> Form:
    """A state that is open, `first`, or a name whose definition reads one of these."""
    name, side = e.name, pair.side(subject.second)
    if name == FIRST:
        return first_token()
    if name in subject.open:
        return unknown(name)
    body = side.body(name)
    if body.maximum or body.backward:
        raise Obstacle(f"`{name}` is a running maximum, or runs backwards")
    if not body.update:
        out = get(Magnitude(subject.second, body.value, subject.open))
        assert isinstance(out, Form)
        return out
    out = get(Magnitude(subject.second, body.value, subject.open | {name}))
    assert isinstance(out, Form)
    return out.closed((name,), pair.domain.longest)


def structured(e: Expr, side: OneMixer, open_states: frozenset[str]) -> bool:
    """Returns whether the form of an expression may be more than a number."""
    match e:
        case Past() | Fir() | Lag() | Run():
            return True
        case Ref():
            reads = side.reads(e)
            return bool(reads & open_states) or (FIRST in reads and bool(open_states))
    return any(structured(x, side, open_states) for x in children(e))


def largest(a: Interval) -> Fraction:
    """Returns the largest absolute value in an interval.

    Raises:
        Obstacle: there is none.
    """
    return to_fraction(row("abs").range(a).high)


def reciprocal(a: Interval) -> Fraction:
    """Returns the largest absolute value of 1 / x in an interval.

    Raises:
        Obstacle: x may be 0, or as near to it as one likes.
    """
    out = inverse(row("abs").range(a)).high
    if out == float("inf"):
        raise Obstacle("a denominator may be 0 on this domain")
    return to_fraction(out)


def array_size(side: OneMixer, name: str, at_most: Callable[[Expr], Fraction]) -> Fraction:
    """Returns the largest absolute value of an entry of a matrix.

    Raises:
        Obstacle: there is none.
    """
    if name in side.constants:
        return at_most(side.constants[name])
    high = min(row("abs").range(side.promised[name]).high, side.moduli[name].high)
    return to_fraction(high)


def run_lag(e: Run) -> Lag:
    """Returns the number of factors of a product between a summed token and the present one.

    Raises:
        Obstacle: it runs between other tokens.
    """
    if not (isinstance(e.low, Bound) and isinstance(e.high, Now)):
        raise Obstacle("a product runs between other tokens than j and i")
    return Lag(tuple(sorted(((TIME, 1), (e.low.var, -1)))), e.low.lag - e.high.lag)


def lag_of(lag: Lag) -> tuple[str, int]:
    """Returns (j, c) of a lag i - j + c.

    Raises:
        Obstacle: it is another one.
    """
    coefficients = dict(lag.terms)
    if coefficients.pop(TIME, 0) != 1 or list(coefficients.values()) != [-1]:
        raise Obstacle("a power has another exponent than i - j")
    return next(iter(coefficients)), lag.constant


def lagged(base: Fraction, lag: Lag) -> Form:
    """Returns base^(i - j + c), for a base that is at least 0."""
    var, constant_part = lag_of(lag)
    base = max(base, Fraction(1, 2**64))
    return decaying(var, base).times(shifted(base, constant_part))


def shifted(base: Fraction, n: int) -> Fraction:
    """Returns a number that is not below base^n, n of either sign."""
    if abs(n) > 4096:
        raise Obstacle("a power is shifted too far")
    return up(base**n)
