"""Rules for gaps: how far apart two expressions are, from how far apart their parts are.

Each rule is an inequality that its docstring states; x and x' are corresponding parts of the two
mixers, and |x - x'| is what is known of their gap. A rule that does not fit two expressions raises
an obstacle.
"""

from __future__ import annotations

from fractions import Fraction
from functools import reduce
from math import factorial

from dsfc.bounds.form import ONE, ZERO, Form, constant, decaying, total, unknown, up
from dsfc.bounds.magnitudes import array_size, lag_of, largest, reciprocal, run_lag, shifted
from dsfc.bounds.pair import Gap, Get, Magnitude, Pair, Range
from dsfc.bounds.ranges import to_fraction
from dsfc.bounds.sums import VAR, summation
from dsfc.expr.build import mul, power
from dsfc.expr.interval import Interval
from dsfc.expr.over_time import Lag, Past, Run
from dsfc.expr.ranges import power as raised
from dsfc.expr.reserved_names import FIRST
from dsfc.expr.slopes import slope
from dsfc.expr.table import row
from dsfc.expr.text import text
from dsfc.expr.tree import (
    Add,
    Axis,
    Div,
    Expr,
    Field,
    Fir,
    Iota,
    Map,
    Mul,
    Now,
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
from dsfc.trusted.entries import Obstacle


class Premises:
    """What is known of the parts of two expressions.

    Args:
        subject: the gap in question.
        pair: the two mixers.
        get: gives what is known.
    """

    def __init__(self, subject: Gap, pair: Pair, get: Get) -> None:
        """Keeps them."""
        self.subject, self.pair, self.get = subject, pair, get

    def gap(self, a: Expr, b: Expr) -> Form:
        """Returns the gap of two parts."""
        out = self.get(Gap(a, b, self.subject.open))
        assert isinstance(out, Form)
        return out

    def magnitude(self, second: bool, e: Expr, unknowns: frozenset[str] = frozenset()) -> Form:
        """Returns the magnitude of a part; of `first` as an unknown, if it is one."""
        out = self.get(Magnitude(second, e, unknowns))
        assert isinstance(out, Form)
        return out

    def range(self, second: bool, e: Expr) -> Interval:
        """Returns the range of a part."""
        out = self.get(Range(second, e))
        assert isinstance(out, Interval)
        return out

    def at_most(self, second: bool, e: Expr) -> Fraction:
        """Returns the largest absolute value of a part."""
        return largest(self.range(second, e))

    def either(self, a: Expr, b: Expr) -> Interval:
        """Returns an interval that holds a part of a, the same part of b and all between."""
        return self.range(False, a).hull(self.range(True, b))


def leaf(p: Premises) -> Form:
    """Equal numbers and arrays are 0 apart; two numbers are |x - x'| apart."""
    match p.subject.a, p.subject.b:
        case Num(x), Num(y):
            return constant(abs(x - y))
        case (Size(x), Size(y)) | (Iota(x), Iota(y)) if x.name == y.name:
            return ZERO
        case (Ones(), Ones()):
            return ZERO
        case (Lag() as x, Lag() as y) if x == y:
            return ZERO
        case Ref(name=x, at=at), Ref(name=y, at=other) if FIRST in (x, y):
            if x == y and at == other:
                return ZERO
        case (Ref(name=x, at=at), Ref(name=y, at=other)) if at == other:
            return _array(p, x, y)
        case Param(name=x), Param(name=y):
            return _array(p, x, y)
    raise Obstacle("the two read different values")


def _array(p: Premises, x: str, y: str) -> Form:
    """Two arrays: one array, or two that have known values."""
    one, other = p.pair.sides
    if x in one.given and y in other.given:
        if one.given[x] == other.given[y]:
            return ZERO
        if x in one.constants and y in other.constants:
            return p.gap(one.constants[x], other.constants[y])
    raise Obstacle(f"`{x}` and `{y}` are different arrays")


def definition(p: Premises) -> Form:
    """Two names that are read at one token are as far apart as what they are defined as."""
    match p.subject.a, p.subject.b:
        case Ref(name=x, at=at), Ref(name=y, at=other) if at == other:
            one, two = p.pair.sides
            if (x, y) in p.subject.open:
                return unknown(x, y)
            if x in one.definitions and y in two.definitions:
                return p.gap(one.definitions[x].value, two.definitions[y].value)
    raise Obstacle("the two are no names of one token")


def inlined(p: Premises) -> Form:
    """A name stands for its definition, at the present token."""
    one, two = p.pair.sides
    match p.subject.a, p.subject.b:
        case Ref(name=x, at=Now(0) | None), b if x in one.definitions:
            if not (isinstance(b, Ref) and b.name in two.definitions):
                return p.gap(one.definitions[x].value, b)
        case a, Ref(name=y, at=Now(0) | None) if y in two.definitions:
            if not (isinstance(a, Ref) and a.name in one.definitions):
                return p.gap(a, two.definitions[y].value)
    raise Obstacle("neither is a name alone")


def state(p: Premises) -> Form:
    """|x_i - x'_i| ≤ c |x_{i-1} - x'_{i-1}| + d for all i gives d (1 + c + … + c^(L-1)).

    c and d are of the gap of the two updates, with that of the states one token earlier unknown;
    both states start from 0.
    """
    match p.subject.a, p.subject.b:
        case Ref(name=x, at=at), Ref(name=y, at=other) if at == other:
            one, two = p.pair.sides
            if x in one.updates and y in two.updates and (x, y) not in p.subject.open:
                u, v = one.updates[x], two.updates[y]
                if u.maximum or v.maximum or u.backward or v.backward:
                    raise Obstacle(f"`{x}` is a running maximum, or runs backwards")
                form = p.get(Gap(u.value, v.value, p.subject.open | {(x, y)}))
                assert isinstance(form, Form)
                return form.closed((x, y), p.pair.domain.longest)
    raise Obstacle("the two are no states")


def addition(p: Premises) -> Form:
    """|Σ x - Σ x'| ≤ Σ |x - x'|, and what has no counterpart counts with its magnitude."""
    a, b = p.subject.a, p.subject.b
    if not isinstance(a, Add) and not isinstance(b, Add):
        raise Obstacle("neither is a sum")
    pairs, left, right = aligned(_terms(a), _terms(b))
    both = min(len(left), len(right))
    pairs += zip(left[:both], right[:both], strict=True)
    left, right = left[both:], right[both:]
    parts = [p.gap(x, y) for x, y in pairs]
    reads = p.subject.open
    for second, rest in ((False, left), (True, right)):
        names = {pair[second] for pair in reads}
        for x in rest:
            if names & p.pair.side(second).reads(x):
                raise Obstacle("a state is added in one of the two alone")
            parts.append(p.magnitude(second, x, frozenset({FIRST} if reads else ())))
    return total(parts)


def _terms(e: Expr) -> list[Expr]:
    return list(e.args) if isinstance(e, Add) else [e]


def aligned(
    left: list[Expr], right: list[Expr]
) -> tuple[list[tuple[Expr, Expr]], list[Expr], list[Expr]]:
    """Returns counterparts, and what has none on either side.

    Equal texts are counterparts, then nodes of one kind, in order. Any choice gives a bound.
    """
    pairs = list[tuple[Expr, Expr]]()
    for alike in (text, _kind):
        rest = list[Expr]()
        for x in left:
            same = next((y for y in right if alike(x) == alike(y)), None)
            if same is None:
                rest.append(x)
            else:
                right = [y for y in right if y is not same]
                pairs.append((x, same))
        left = rest
    if len(left) == len(right) == 1:
        return [*pairs, (left[0], right[0])], [], []
    return pairs, left, right


def _kind(e: Expr) -> str:
    """What an expression looks like: its nodes' kinds, signs of factors included."""
    if isinstance(e, Mul):
        numbers = [x for x in e.args if isinstance(x, Num)]
        sign = "-" if sum(x.value < 0 for x in numbers) % 2 else ""
        return sign + "*".join(sorted(_kind(x) for x in e.args if not isinstance(x, Num)))
    if isinstance(e, Past):
        return f"Past {e.relation} {e.lag}"
    if isinstance(e, Ref):
        return f"Ref {e.at}"
    return type(e).__name__


def product(p: Premises) -> Form:
    """|x y - x' y'| ≤ |x| |y - y'| + |y'| |x - x'|, for any number of factors."""
    a, b = p.subject.a, p.subject.b
    if not isinstance(a, Mul) and not isinstance(b, Mul):
        raise Obstacle("neither is a product")
    pairs, left, right = aligned(_factors(a), _factors(b))
    if left or right:
        pairs.append((mul(*left), mul(*right)))
    if len(pairs) == 1:
        raise Obstacle("the factors have no counterparts")
    gaps = [p.gap(x, y) for x, y in pairs]
    out = list[Form]()
    for k, gap in enumerate(gaps):
        if not gap.zero:
            before = [p.magnitude(False, x) for x, _ in pairs[:k]]
            after = [p.magnitude(True, y) for _, y in pairs[k + 1 :]]
            out.append(reduce(lambda x, y: x * y, [*before, gap, *after], ONE))
    return total(out)


def _factors(e: Expr) -> list[Expr]:
    return list(e.args) if isinstance(e, Mul) else [e]


def quotient(p: Premises) -> Form:
    """|x / y - x' / y'| ≤ |x - x'| / |y'| + |x / y| |y - y'| / |y'|."""
    match p.subject.a, p.subject.b:
        case Div(x, y), Div(other, below):
            pass
        case Div(x, y), other:
            below = Num(Fraction(1))
        case x, Div(other, below):
            y = Num(Fraction(1))
        case _:
            raise Obstacle("neither is a quotient")
    top, bottom = p.gap(x, other), p.gap(y, below)
    if top.zero and bottom.zero:
        return ZERO
    scale = reciprocal(p.range(True, below))
    out = top.times(scale)
    if bottom.zero:
        return out
    return out + bottom.times(up(scale * p.at_most(False, p.subject.a)))


def linear(p: Premises) -> Form:
    """Sums over an axis, means, maxima, linear maps and filters: each entry differs by so much."""
    match p.subject.a, p.subject.b:
        case Reduce(how, axis, x), Reduce(other, along, y) if (
            how is other and axis.name == along.name
        ):
            gap = p.gap(x, y)
            many = how is Reduction.SUM and not gap.zero
            return gap.times(p.pair.size(axis)) if many else gap
        case Rename(old, new, x), Rename(before, after, y):
            if (old.name, new.name) == (before.name, after.name):
                return p.gap(x, y)
        case Map(m, x), Map(n, y):
            one, two = p.pair.sides
            if one.given[m.name] == two.given[n.name] and m.adjoint == n.adjoint:
                gap = p.gap(x, y)
                if gap.zero:
                    return ZERO
                each = array_size(two, n.name, lambda e: p.at_most(True, e))
                return gap.times(up(each * p.pair.count(m.source)))
        case Fir(axis, w, x, reverse), Fir(along, v, y, backwards):
            if axis.name == along.name and reverse == backwards:
                return _filters(p, (axis, w, x), (v, y))
    raise Obstacle("the two are no linear operation of one kind")


def _filters(p: Premises, a: tuple[Axis, Expr, Expr], b: tuple[Expr, Expr]) -> Form:
    axis, w, x = a
    v, y = b
    taps, values = p.gap(w, v), p.gap(x, y)
    if taps.zero and values.zero:
        return ZERO
    out = list[Form]()
    if not taps.zero:
        out.append(taps * p.magnitude(False, x))
    if not values.zero:
        out.append(values * p.magnitude(True, v))
    return total(out).times(p.pair.size(axis))


def primitive(p: Premises) -> Form:
    """|f(x) - f(x')| ≤ sup |f'| |x - x'|, the slope being one between all values of both."""
    match p.subject.a, p.subject.b:
        case Prim(name=f, args=xs, axis=axis), Prim(name=g, args=ys, axis=along) if f == g:
            if (axis and axis.name) != (along and along.name) or len(xs) != len(ys):
                raise Obstacle("the two are along different axes")
        case _:
            raise Obstacle("the two are no primitives of one name")
    gaps = [p.gap(x, y) for x, y in zip(xs, ys, strict=True)]
    out = list[Form]()
    for gap, x, y in zip(gaps, xs, ys, strict=True):
        if gap.zero:
            continue
        if x.field is Field.REAL and y.field is Field.REAL:
            steep = slope(f, p.either(x, y))
        elif f in ("re", "im", "conj", "abs"):
            steep = 1.0
        else:
            raise Obstacle(f"`{f}` of a complex value has no bound on its slope")
        if f in ("l2norm", "rmsnorm"):
            raise Obstacle("a norm is compared as a quotient")
        out.append(gap.times(to_fraction(steep)))
    return total(out)


def largest_of(p: Premises) -> Form:
    """max(x, c) = x where x ≥ c always, so a floor that is never reached counts for nothing."""
    match p.subject.a, p.subject.b:
        case Prim("max", (x, c)), Prim("max", (y, d)):
            first, second = p.range(False, x), p.range(False, c)
            third, fourth = p.range(True, y), p.range(True, d)
            if first.low >= second.high and third.low >= fourth.high:
                return p.gap(x, y)
        case Prim("max", (x, c)), y:
            if p.range(False, x).low >= p.range(False, c).high:
                return p.gap(x, y)
        case x, Prim("max", (y, d)):
            if p.range(True, y).low >= p.range(True, d).high:
                return p.gap(x, y)
    raise Obstacle("a maximum may be either of its arguments")


def norm(p: Premises) -> Form:
    """l2norm is x / max(√Σ x², 1e-12), by definition; rmsnorm is √n times that."""
    a, b = expanded(p.subject.a), expanded(p.subject.b)
    if a is p.subject.a and b is p.subject.b:
        raise Obstacle("neither is a norm")
    return p.gap(a, b)


def expanded(e: Expr) -> Expr:
    """Returns a norm as the quotient that it is, other expressions unchanged."""
    match e:
        case Prim("l2norm" | "rmsnorm" as name, (x,), axis=Axis() as axis):
            square = Reduce(Reduction.SUM, axis, power(x, Num(Fraction(2))))
            length = Prim("sqrt", (square,), Field.REAL)
            floor = Prim("max", (length, Num(Fraction(1e-12))), Field.REAL)
            if name == "l2norm":
                return Div(x, floor)
            return Div(mul(power(Size(axis), Num(Fraction(1, 2))), x), floor)
    return e


def powers(p: Premises) -> Form:
    """|x^k - x'^k| ≤ |k| sup |x|^(k-1) |x - x'|."""
    match p.subject.a, p.subject.b:
        case Pow(x, Num(k)), Pow(y, Num(other)) if k == other:
            gap = p.gap(x, y)
            if gap.zero:
                return ZERO
            if x.field is not Field.REAL or y.field is not Field.REAL:
                raise Obstacle("a power of a complex value has no bound on its slope")
            return gap.times(up(abs(k) * _steepest(p.either(x, y), k)))
        case Pow(x, k), Pow(y, other):
            if p.gap(x, y).zero and p.gap(k, other).zero:
                return ZERO
    raise Obstacle("the two are no powers with one exponent")


def _steepest(between: Interval, k: Fraction) -> Fraction:
    if k.denominator != 1 and between.low < 0:
        raise Obstacle("a root of a number that may be negative has no bound on its slope")
    return largest(raised(between, k - 1))


def series(p: Premises) -> Form:
    """Taylor's remainder: |Σ_{r ≤ P} s^r / r! - e^s| ≤ |s|^(P+1) / (P+1)! e^max(s, 0)."""
    match p.subject.a, p.subject.b:
        case Series(order, x), Series(other, y) if order == other:
            gap = p.gap(x, y)
            if gap.zero:
                return ZERO
            return gap.times(_exp_at(largest(p.either(x, y))))
        case (Series(order, x), Prim("exp", (y,))) | (Prim("exp", (y,)), Series(order, x)):
            second = isinstance(p.subject.b, Series)
            inside = p.range(second, x)
            gap = p.gap(y, x) if second else p.gap(x, y)
            if x.field is not Field.REAL or y.field is not Field.REAL:
                raise Obstacle("a series of complex values")
            size = largest(inside)
            high = row("exp").range(Interval(0.0, max(inside.high, 0.0))).high
            remainder = up(size ** (order + 1) / factorial(order + 1) * to_fraction(high))
            if gap.zero:
                return constant(remainder)
            both = p.either(x, y) if not second else p.either(y, x)
            return constant(remainder) + gap.times(to_fraction(row("exp").range(both).high))
    raise Obstacle("neither is a Taylor series of an exponential")


def _exp_at(x: Fraction) -> Fraction:
    return to_fraction(row("exp").range(Interval(0.0, float(up(x)) * (1 + 1e-15))).high)


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


def apart(p: Premises) -> Form:
    """|x - x'| is at most the distance of the far ends of the ranges of x and x'."""
    a, b = p.subject.a, p.subject.b
    if p.subject.open and any(
        {pair[k] for pair in p.subject.open} & p.pair.side(bool(k)).reads(e)
        for k, e in enumerate((a, b))
    ):
        raise Obstacle("the two read states")
    one, two = p.range(False, a), p.range(True, b)
    if a.field is Field.COMPLEX or b.field is Field.COMPLEX:
        return constant(up(to_fraction(one.high) + to_fraction(two.high)))
    ends = [to_fraction(x) for x in (one.low, one.high, two.low, two.high)]
    return constant(up(max(ends[1] - ends[2], ends[3] - ends[0], Fraction(0))))
