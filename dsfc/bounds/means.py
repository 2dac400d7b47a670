"""Rules for ratios of positive weights, and for means that are weighted by them.

If weights change by factors between m and M, a mean of values between l and h changes by at most
(h - l) tanh(log(M / m) / 4). Proof: the change is linear in the values, so it is largest where each
is l or h; let p be the share of those at h. Their new share is at most p M / (p M + (1 - p) m), and
what this is above p is largest at p = √m / (√M + √m), where it is (√M - √m) / (√M + √m).
"""

from __future__ import annotations

from fractions import Fraction
from functools import reduce

from dsfc.bounds.form import Form, constant, up
from dsfc.bounds.gaps import Premises, aligned
from dsfc.bounds.pair import Gap, Get, Pair, Range, Ratio
from dsfc.bounds.ranges import above_zero, to_float, to_fraction, weighted
from dsfc.bounds.sums import VAR, is_plain, renamed
from dsfc.expr.build import mul
from dsfc.expr.interval import INF, Interval, exactly, inverse, plus, times
from dsfc.expr.over_time import Past
from dsfc.expr.ranges import ONE
from dsfc.expr.table import row
from dsfc.expr.tree import Div, Field, Mul, Prim, Series
from dsfc.trusted.entries import Obstacle


def mean(p: Premises) -> Form:
    """|Σ w v / Σ w - Σ w' v' / Σ w'| ≤ (sup v - inf v) tanh(log(M / m) / 4) + |v - v'|.

    w and w' are positive, m ≤ w' / w ≤ M, and both sums run over the same tokens.
    """
    match p.subject.a, p.subject.b:
        case Div(Past() as x, y), Div(Past() as other, below):
            one, two = weighted(x, y), weighted(other, below)
        case _:
            raise Obstacle("the two are no means")
    same = (x.relation, x.lag) == (other.relation, other.lag)
    if one is None or two is None or not same or p.subject.open:
        raise Obstacle("the two are no means over the same tokens")
    if not is_plain(x.body) or not is_plain(other.body):
        raise Obstacle("a summand of a mean has a sum in it")
    (w, v), (w_other, v_other) = (
        [renamed(e, s.var, VAR) for e in parts] for s, parts in ((x, one), (other, two))
    )
    if any(e.field is not Field.REAL for e in (w, v, w_other, v_other)):
        raise Obstacle("a mean has complex weights or values")
    if not above_zero(p.range(False, w)) or not above_zero(p.range(True, w_other)):
        raise Obstacle("a weight of a mean may be 0 or negative")
    gap = p.gap(v, v_other)
    if gap.plain is None:
        raise Obstacle("the values of a mean depend on the lag")
    ratio = p.get(Ratio(w, w_other))
    assert isinstance(ratio, Interval)
    if ratio.low <= 0 or ratio.high == INF:
        raise Obstacle("the ratio of the weights of a mean has no bounds")
    values = p.range(False, v)
    spread = to_fraction(values.high) - to_fraction(values.low)
    quotient = times(exactly(Fraction(ratio.high)), inverse(exactly(Fraction(ratio.low))))
    root = row("sqrt").range(Interval(max(quotient.low, 1.0), max(quotient.high, 1.0)))
    share = times(plus(root, Interval(-1.0, -1.0)), inverse(plus(root, ONE))).high
    return constant(up(spread * to_fraction(share))) + gap


def ratio_of_equal(subject: Ratio, pair: Pair, get: Get) -> Interval:
    """Two expressions that are 0 apart have the ratio 1."""
    gap = get(Gap(subject.a, subject.b))
    assert isinstance(gap, Form)
    if not gap.zero:
        raise Obstacle("the two are not equal")
    return ONE


def _check_real(subject: Ratio) -> None:
    """Raises an Obstacle for a ratio of complex numbers, which lie between no bounds."""
    if subject.a.field is not Field.REAL or subject.b.field is not Field.REAL:
        raise Obstacle("weights of a mean are complex")


def ratio_of_exponentials(subject: Ratio, pair: Pair, get: Get) -> Interval:
    """e^s' / e^s lies between e^-d and e^d, where |s - s'| ≤ d."""
    _check_real(subject)
    match subject.a, subject.b:
        case Prim("exp", (s,)), Prim("exp", (other,)):
            d = _plain(get(Gap(s, other)))
            return row("exp").range(Interval(-d, d))
    raise Obstacle("the two are no exponentials")


def ratio_of_series(subject: Ratio, pair: Pair, get: Get) -> Interval:
    """T(s) e^-s has the derivative - s^P / P! e^-s, T being the Taylor series of order P.

    So it falls where P is even; where P is odd it grows up to s = 0, where it is 1, and falls.
    Hence it lies between its values at the ends of the range of s, 1 besides.
    """
    _check_real(subject)
    match subject.a, subject.b:
        case Prim("exp", (s,)), Series(order, other):
            inside, d = get(Range(True, other)), _plain(get(Gap(s, other)))
        case Series(order, s), Prim("exp", (other,)):
            inside, d = get(Range(False, s)), _plain(get(Gap(s, other)))
        case _:
            raise Obstacle("the two are no exponential and Taylor series")
    assert isinstance(inside, Interval)
    ends = [_taylor_ratio(order, to_fraction(x)) for x in (inside.low, inside.high)]
    out = ends[0].hull(ends[1])
    if order % 2:
        out = out.hull(ONE)
    if out.low <= 0:
        raise Obstacle("a Taylor series may be 0 or negative on this domain")
    out = times(out, row("exp").range(Interval(-d, d))) if d else out
    return out if isinstance(subject.b, Series) else inverse(out)


def _taylor_ratio(order: int, s: Fraction) -> Interval:
    """T(s) e^-s."""
    total, term = Fraction(1), Fraction(1)
    for r in range(1, order + 1):
        term = term * s / r
        total += term
    return times(exactly(total), row("exp").range(exactly(-s)))


def ratio_of_products(subject: Ratio, pair: Pair, get: Get) -> Interval:
    """The ratio of two products is the product of the ratios of their factors."""
    _check_real(subject)
    match subject.a, subject.b:
        case Mul(xs), Mul(ys):
            pairs, left, right = aligned(list(xs), list(ys))
        case _:
            raise Obstacle("the two are no products")
    if left or right:
        pairs.append((mul(*left), mul(*right)))
    ratios = list[Interval]()
    for x, y in pairs:
        out = get(Ratio(x, y))
        assert isinstance(out, Interval)
        ratios.append(out)
    return reduce(times, ratios)


def ratio_by_gap(subject: Ratio, pair: Pair, get: Get) -> Interval:
    """|x' / x - 1| ≤ |x' - x| / inf x."""
    _check_real(subject)
    low = get(Range(False, subject.a))
    assert isinstance(low, Interval)
    if low.low <= 0:
        raise Obstacle("a weight of a mean comes as near to 0 as one likes")
    d = _plain(get(Gap(subject.a, subject.b)))
    change = times(Interval(0.0, d), inverse(Interval(low.low, low.low))).high
    return plus(ONE, Interval(-change, change))


def _plain(bound: object) -> float:
    """A gap as a number."""
    assert isinstance(bound, Form)
    number = bound.plain
    if number is None:
        raise Obstacle("weights of a mean move with the lag")
    return to_float(number)
