"""Rules for gaps of functions: linear maps, primitives, norms, powers, Taylor series."""

from __future__ import annotations

from fractions import Fraction
from math import factorial

from dsfc.bounds.form import ZERO, Form, constant, total, up
from dsfc.bounds.gaps import Premises
from dsfc.bounds.magnitudes import array_size, largest
from dsfc.bounds.ranges import to_fraction
from dsfc.expr.build import mul, power
from dsfc.expr.interval import Interval
from dsfc.expr.ranges import power as raised
from dsfc.expr.slopes import slope
from dsfc.expr.table import row
from dsfc.expr.tree import (
    Axis,
    Div,
    Expr,
    Field,
    Fir,
    Map,
    Num,
    Pow,
    Prim,
    Reduce,
    Reduction,
    Rename,
    Series,
    Size,
)
from dsfc.trusted.entries import Obstacle


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
            if one.called[m.name] == two.called[n.name] and m.adjoint == n.adjoint:
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
            floor = Prim("max", (length, Num(Fraction(1, 10**12))), Field.REAL)
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
