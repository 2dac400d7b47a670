"""Rules for gaps: how far apart two expressions are, from how far apart their parts are.

Each rule is an inequality that its docstring states; x and x' are corresponding parts of the two
mixers, and |x - x'| is what is known of their gap. A rule that does not fit two expressions raises
an obstacle.
"""

from __future__ import annotations

from fractions import Fraction
from functools import reduce

from dsfc.bounds.form import ONE, ZERO, Form, constant, total, unknown, up
from dsfc.bounds.magnitudes import largest, reciprocal
from dsfc.bounds.pair import Gap, Get, Magnitude, Pair, Range
from dsfc.bounds.ranges import to_fraction
from dsfc.expr.build import mul
from dsfc.expr.interval import Interval
from dsfc.expr.over_time import Lag, Past
from dsfc.expr.reserved_names import FIRST
from dsfc.expr.text import text
from dsfc.expr.tree import (
    Add,
    Div,
    Expr,
    Field,
    Iota,
    Mul,
    Now,
    Num,
    Ones,
    Param,
    Ref,
    Size,
)
from dsfc.trusted.entries import Obstacle


class Premises:
    """The bounds that are known of the parts of two expressions.

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
    if x in one.called and y in other.called:
        if one.called[x] == other.called[y]:
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
            at = next((k for k, y in enumerate(right) if alike(x) == alike(y)), None)
            if at is None:
                rest.append(x)
            else:
                pairs.append((x, right[at]))
                right = [*right[:at], *right[at + 1 :]]
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
