"""Rules for gaps of sums over the past, and of decays in the lag of a sum."""

from __future__ import annotations

from fractions import Fraction

from dsfc.bounds.form import ZERO, Form, decaying, total, up
from dsfc.bounds.gaps import Premises
from dsfc.bounds.magnitudes import lag_of, run_lag, shifted
from dsfc.bounds.sums import VAR, summation
from dsfc.expr.over_time import Lag, Run
from dsfc.expr.tree import (
    Expr,
    Pow,
)
from dsfc.trusted.entries import Obstacle


def decay_powers(p: Premises) -> Form:
    """|λ^m - λ'^m| ≤ m sup λ^(m-1) |λ - λ'|, and so for products of m factors."""
    lag, x, y = _power_of(p.subject.a), *_bases(p)
    if lag is None or lag != _power_of(p.subject.b):
        raise Obstacle("the two are no powers of one lag")
    gap = p.gap(x, y)
    if gap.zero:
        return ZERO
    if gap.plain is None:
        raise Obstacle("a decay depends on a state")
    var, c = lag_of(lag)
    base = max(p.at_most(False, x), p.at_most(True, y), Fraction(1, 2**64))
    out = decaying(var, base, 1).times(shifted(base, c - 1))
    if c > 0:
        out = out + decaying(var, base).times(up(c * shifted(base, c - 1)))
    return out * gap


def _bases(p: Premises) -> tuple[Expr, Expr]:
    def base(e: Expr) -> Expr:
        match e:
            case Pow(x, Lag()):
                return x
            case Run(arg=x):
                return x
        raise Obstacle("the two are no powers of a lag")

    return base(p.subject.a), base(p.subject.b)


def _power_of(e: Expr) -> Lag | None:
    match e:
        case Pow(_, Lag() as lag):
            return lag
        case Run():
            return run_lag(e)
    return None


def sums(p: Premises) -> Form:
    """Sums over the past differ by the gap of their summands, added up over the lags of both.

    Lags that one of the two sums leaves out count with the magnitude of the other's summand.
    """
    sides = p.pair.sides
    a = summation(p.subject.a, sides[0], p.pair.sizes)
    b = summation(p.subject.b, sides[1], p.pair.sizes)
    if a is None or b is None or p.subject.open:
        raise Obstacle("the two are no sums over the past")
    longest = p.pair.domain.longest
    end = None if longest is None else longest - 1

    def least(*lasts: int | None) -> int | None:
        known = [x for x in (*lasts, end) if x is not None]
        return min(known) if known else None

    first, last = max(a.first, b.first), least(a.last, b.last)
    gap = p.gap(a.body, b.body)
    out = [gap.summed(VAR, first, last)]
    for second, one, other in ((False, a, b), (True, b, a)):
        body: Form | None = None
        for start, stop in _outside(one.first, least(one.last), other.first, least(other.last)):
            body = p.magnitude(second, one.body) if body is None else body
            out.append(body.summed(VAR, start, stop))
    return total(out)


def _outside(
    first: int, last: int | None, other: int, other_last: int | None
) -> list[tuple[int, int | None]]:
    """Lags from `first` to `last` that are not from `other` to `other_last`."""
    out = list[tuple[int, int | None]]()
    if first < other:
        out.append((first, other - 1 if last is None else min(last, other - 1)))
    if other_last is not None and (last is None or last > other_last):
        out.append((max(first, other_last + 1), last))
    return out
