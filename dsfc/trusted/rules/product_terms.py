"""An expression as a sum of products, each index that is summed as far inside as it goes.

Two expressions with equal terms are equal wherever they have values. The other way nothing is said:
what is no sum, product or sum along an axis is a factor of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from dsfc.expr.build import ONE, add, mul, num, walk
from dsfc.expr.tree import (
    Add,
    Axis,
    Div,
    Expr,
    Mul,
    Num,
    Ones,
    Pow,
    Reduce,
    Reduction,
    Size,
)
from dsfc.trusted.entries import Obstacle

TERM_LIMIT = 256
"""Terms of one expression."""

POWER_LIMIT = 8
"""Exponents up to which a power is a product."""


@dataclass(frozen=True, slots=True)
class Summed:
    """Σ over axes of a product, each factor of which has one of them, or is in one that has.

    Attributes:
        axes: the axes.
        inside: the factors.
    """

    axes: frozenset[Axis]
    inside: Factors


Factors = frozenset[tuple[Expr | Summed, int]]
"""A product: each factor with how often it stands there."""

Terms = Mapping[Factors, Fraction]
"""A sum: product → what it is multiplied by, other than 0."""

NOTHING: Factors = frozenset()


def terms_of(e: Expr) -> Terms:
    """Returns an expression as a sum of products.

    Raises:
        Obstacle: there are too many terms.
    """
    match e:
        case Num(value):
            return {NOTHING: value} if value else {}
        case Ones():
            return {NOTHING: Fraction(1)}
        case Add(args):
            return plus(*map(terms_of, args))
        case Mul(args):
            return times(*map(terms_of, args))
        case Div(above, below):
            return times(terms_of(above), _atom(Div(ONE, below)))
        case Pow(base, Num(exponent)) if exponent in range(1, POWER_LIMIT + 1):
            return times(*[terms_of(base)] * int(exponent))
        case Reduce(Reduction.SUM, axis, arg):
            parts = [_summed(axis, factors, c) for factors, c in terms_of(arg).items()]
            return plus(*parts)
    return _atom(e)


def plus(*sums: Terms) -> Terms:
    """Returns the sum."""
    out = dict[Factors, Fraction]()
    for one in sums:
        for factors, c in one.items():
            out[factors] = out.get(factors, Fraction(0)) + c
    return {factors: c for factors, c in out.items() if c}


def times(*sums: Terms) -> Terms:
    """Returns the product.

    Raises:
        Obstacle: there are too many terms.
    """
    out: Terms = {NOTHING: Fraction(1)}
    for one in sums:
        if len(out) * len(one) > TERM_LIMIT:
            raise Obstacle(f"a product has more than {TERM_LIMIT} terms")
        out = plus(*({with_all(f, g): c * d} for f, c in out.items() for g, d in one.items()))
    return out


def scaled(terms: Terms, by: Fraction | int) -> Terms:
    """Returns a sum times a number other than 0."""
    return {factors: c * by for factors, c in terms.items()}


def with_all(one: Factors, other: Factors) -> Factors:
    """Returns a product of all factors of both."""
    return _product(Counter(dict(one)) + Counter(dict(other)))


def without(one: Factors, other: Factors) -> Factors | None:
    """Returns a product without the factors of another; None where it has not all of them."""
    left = Counter(dict(one))
    left.subtract(dict(other))
    return _product(left) if min(left.values(), default=0) >= 0 else None


def single(factor: Expr | Summed) -> Factors:
    """Returns a factor as a product."""
    return frozenset({(factor, 1)})


def axes_of(factors: Factors) -> frozenset[Axis]:
    """Returns the axes of a product; `ones` adds none."""
    return frozenset[Axis]().union(*(_axes(f) for f, _ in factors))


def expression(terms: Terms, known: Iterable[Expr]) -> Expr:
    """Returns a sum of products as an expression.

    Args:
        terms: the sum.
        known: expressions with all of its factors inside, in the order that factors are to have.
    """
    order = dict[Expr, int]()
    for part in (part for e in known for part in walk(e)):
        order.setdefault(part, len(order))
    return add(*(mul(num(c), _expression(factors, order)) for factors, c in terms.items()))


def parts_of(factors: Factors) -> tuple[Expr, ...]:
    """Returns the expressions that a product is made of."""
    out: list[Expr] = []
    for f, _ in factors:
        out += parts_of(f.inside) if isinstance(f, Summed) else (f,)
    return tuple(out)


def _summed(axis: Axis, factors: Factors, c: Fraction) -> Terms:
    inside = frozenset((f, k) for f, k in factors if axis in _axes(f))
    if not inside:
        return {with_all(factors, single(Size(axis))): c}
    match tuple(inside):
        case ((Summed(axes, within), 1),):
            total = Summed(axes | {axis}, within)
        case _:
            total = Summed(frozenset({axis}), inside)
    return {with_all(factors - inside, single(total)): c}


def _axes(f: Expr | Summed) -> frozenset[Axis]:
    return axes_of(f.inside) - f.axes if isinstance(f, Summed) else f.axes


def _atom(e: Expr) -> Terms:
    return {single(e): Fraction(1)}


def _product(counts: Mapping[Expr | Summed, int]) -> Factors:
    return frozenset((f, k) for f, k in counts.items() if k)


def _expression(factors: Factors, order: Mapping[Expr, int]) -> Expr:
    out: list[Expr] = []
    for f, k in sorted(factors, key=lambda item: _place(item[0], order)):
        whole = f
        if isinstance(whole, Summed):
            inner = _expression(whole.inside, order)
            for axis in sorted(whole.axes):
                inner = Reduce(Reduction.SUM, axis, inner)
            whole = inner
        out += [whole] * k
    return mul(*out)


def _place(f: Expr | Summed, order: Mapping[Expr, int]) -> tuple[int, ...]:
    """Where a factor stands among others: sets have no order that every run has."""
    match f:
        case Summed(_, inside):
            return min(_place(g, order) for g, _ in inside)
        case Div(_, below) if f not in order:
            return order[below], 1
        case Size() if f not in order:
            return len(order), f.axis.index
    return order[f], 0
