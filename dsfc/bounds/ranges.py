"""Rule "range": where the entries of an expression lie, by interval arithmetic rounded outward.

The ranges of primitives are those of the primitive table. What is known of names comes from
declarations and from the domain; what a definition says is used too. A state lies where the rule
for states says. Lengths along an axis, which a domain may bound, bound inner products by Cauchy and
Schwarz, and are at most the square root of the size times the largest entry.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import reduce

from dsfc.bounds.form import Form
from dsfc.bounds.pair import Get, Magnitude, Pair, Range
from dsfc.expr.build import mul
from dsfc.expr.interval import INF, NONNEG, REALS, Interval, above, exactly, plus, times
from dsfc.expr.over_time import Lag, Past, Relation, Run
from dsfc.expr.ranges import ONE, Ranges, inside, power
from dsfc.expr.reserved_names import FIRST, TIME
from dsfc.expr.table import row
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
    Param,
    Pow,
    Prim,
    Reduce,
    Reduction,
    Ref,
    Series,
    Size,
)
from dsfc.trusted.entries import Obstacle

_ZERO = Interval(0.0, 0.0)
_SHARE = Interval(0.0, 1.0)


def range_of(subject: Range, pair: Pair, get: Get) -> Interval:
    """Returns an interval that holds every entry of an expression at every token."""
    values = _Values(subject, pair, get)
    return values.of(subject.e) if subject.e.field is Field.REAL else values.modulus(subject.e)


def state_range(subject: Range, pair: Pair, get: Get) -> Interval:
    """Returns where the entries of a state lie.

    Its absolute value is bounded by the form of its update. If the update is at least 0 wherever
    the state was so one token earlier, it is so at all tokens, as it starts from 0.

    Raises:
        Obstacle: the expression is no state, or has no bound.
    """
    side = pair.side(subject.second)
    e = subject.e
    if not isinstance(e, Ref) or e.name not in side.updates or e.name in subject.nonneg:
        raise Obstacle("not a state")
    update = side.updates[e.name]
    if update.maximum or update.backward:
        raise Obstacle(f"`{e.name}` is a running maximum, or runs backwards")
    low, high = -INF, INF
    if e.kind is Field.REAL:
        from_zero = get(Range(subject.second, update.value, subject.nonneg | {e.name}))
        assert isinstance(from_zero, Interval)
        if from_zero.low >= 0:
            low = from_zero.low
    try:
        form = get(Magnitude(subject.second, update.value, frozenset({e.name})))
        assert isinstance(form, Form)
        size = form.closed((e.name,), pair.domain.longest).plain
        if size is not None:
            high = to_float(size)
    except Obstacle:
        if low < 0:
            raise
    out = Interval(low if low >= 0 else -high, high)
    if e.kind is Field.COMPLEX:
        out = Interval(0.0, high)
    return out if inside(e) else out.hull(_ZERO)


def to_float(x: Fraction) -> float:
    """Returns a double that is not below a number; infinity where there is none."""
    try:
        nearest = float(x)
    except OverflowError:
        return INF
    return nearest if Fraction(nearest) >= x else above(nearest)


def to_fraction(x: float) -> Fraction:
    """Returns a finite double as a fraction.

    Raises:
        Obstacle: it is infinite.
    """
    if math.isinf(x):
        raise Obstacle("a value has no bound on this domain")
    return Fraction(x)


class _Values(Ranges):
    """Ranges in one mixer, names looked up."""

    def __init__(self, subject: Range, pair: Pair, get: Get) -> None:
        super().__init__()
        self._second, self._nonneg = subject.second, subject.nonneg
        self._pair, self._side, self._get = pair, pair.side(subject.second), get

    def _ask(self, e: Expr) -> Interval:
        try:
            out = self._get(Range(self._second, e, self._nonneg))
        except Obstacle:
            return REALS if e.field is Field.REAL else NONNEG
        assert isinstance(out, Interval)
        return out

    def written(self, e: Expr) -> Interval:
        """Returns the range of an expression as it is written, given those of its parts."""
        if e.field is Field.COMPLEX:
            return REALS
        match e:
            case Param() | Ref():
                return self._named(e)
            case Size(axis):
                return self._size(axis)
            case Iota(axis):
                return Interval(0.0, plus(self._size(axis), Interval(-1.0, -1.0)).high)
            case Map(map=linear, arg=arg):
                weight = self._array(linear.name)
                return times(times(weight, self.of(arg)), self._count(linear.source))
            case Fir(axis, weight_of, arg):
                each = times(self.of(weight_of), self.of(arg))
                return times(each, self._size(axis)).hull(_ZERO)
            case Reduce(Reduction.SUM, axis, arg):
                return self._summed(axis, arg)
            case Prim("sqrt", (Reduce(Reduction.SUM, axis, arg),)):
                squared = _squared(arg)
                if squared is not None:
                    return _meet(super().written(e), self.length(squared, axis))
            case Prim("rmsnorm", (arg,), axis=Axis() as axis):
                root = row("sqrt").range(self._size(axis))
                return Interval(-root.high, root.high)
            case Series(order, arg):
                return _meet(super().written(e), _series(order, self.of(arg)))
            case Pow(base, Lag() as lag):
                return _falling(self.of(base)) if from_past(lag) else REALS
            case Run(arg=arg):
                return _falling(self.of(arg))
            case Past():
                return self._past(e)
            case Div(numerator, denominator):
                mean = weighted(numerator, denominator)
                if mean is not None and above_zero(self.of(mean[0])):
                    return _meet(super().written(e), self.of(mean[1]))
        return super().written(e)

    def size(self, e: Expr) -> Interval:
        """Returns where the modulus of a complex expression lies."""
        match e:
            case Param() | Ref():
                return self._named(e)
            case Add(args):
                return _upto(reduce(plus, map(self.modulus, args)).high)
            case Map(map=linear, arg=arg):
                weight = self._array(linear.name)
                each = times(row("abs").range(weight), self.modulus(arg))
                return _upto(times(each, self._count(linear.source)).high)
            case Reduce(Reduction.SUM, axis, arg):
                return _upto(times(self.modulus(arg), self._size(axis)).high)
            case Prim("cplx", (re, im)):
                parts = [power(self.of(x), Fraction(2)) for x in (re, im)]
                return row("sqrt").range(plus(*parts))
            case Prim("re" | "im", (arg,)):
                return _upto(self.modulus(arg).high)
            case Past():
                return self._past(e)
            case Pow(base, Lag() as lag):
                return _falling(self.modulus(base)) if from_past(lag) else NONNEG
        return super().size(e)

    def modulus(self, e: Expr) -> Interval:
        """Returns an interval that contains |x| for every value of an expression."""
        out = super().modulus(e)
        if isinstance(e, Param | Ref) and e.field is Field.REAL and inside_of(e):
            out = _meet(out, self._side.moduli.get(e.name, NONNEG))
        return out

    def real_part(self, e: Expr) -> Interval:
        """Returns an interval that contains Re x for every value of an expression."""
        size = self.modulus(e).high if e.field is Field.COMPLEX else INF
        return _meet(super().real_part(e), Interval(-size, size))

    def length(self, e: Expr, axis: Axis) -> Interval:
        """Returns where the Euclidean length of a real value along an axis lies."""
        largest = row("abs").range(self.of(e)).high
        root = row("sqrt").range(self._size(axis))
        out = _upto(times(root, Interval(largest, largest)).high if largest < INF else INF)
        match e:
            case Ref(name=name) | Param(name=name):
                same = self._side.called.get(name, name)
                known = self._pair.domain.lengths(same, axis.name)
                out = _meet(out, known if inside_of(e) else known.hull(_ZERO))
                if isinstance(e, Ref) and name in self._side.definitions and e.at is not None:
                    body = self._side.definitions[name].value
                    if isinstance(body, Prim) and body.axis is not None:
                        bounded = self.length(body, axis)
                        out = _meet(out, bounded if inside_of(e) else bounded.hull(_ZERO))
            case Prim("l2norm", axis=along) if along == axis:
                out = _meet(out, _SHARE)
            case Prim("rmsnorm", axis=along) if along == axis:
                out = _meet(out, _upto(root.high))
        return out

    def _summed(self, axis: Axis, arg: Expr) -> Interval:
        """Σ over an axis."""
        out = times(self.of(arg), self._size(axis))
        squared = _squared(arg)
        if squared is not None:
            return _meet(out, power(self.length(squared, axis), Fraction(2)))
        if isinstance(arg, Mul) and len(arg.args) == 2 and all(axis in x.axes for x in arg.args):
            bound = times(*(self.length(x, axis) for x in arg.args)).high
            out = _meet(out, Interval(-bound, bound))
        return out

    def _size(self, axis: Axis) -> Interval:
        """The size of an axis, 1 or more where it is not known."""
        try:
            return exactly(self._pair.size(axis))
        except Obstacle:
            return Interval(1.0, INF)

    def _count(self, axes: tuple[Axis, ...]) -> Interval:
        """The number of entries over some axes."""
        return reduce(times, map(self._size, axes), ONE)

    def _array(self, name: str) -> Interval:
        side = self._side
        if name in side.constants:
            value = side.constants[name]
            return self.of(value) if value.field is Field.REAL else self.modulus(value)
        return side.promised[name]

    def _named(self, e: Param | Ref) -> Interval:
        """What a name is."""
        name, side = e.name, self._side
        if name == FIRST:
            return _SHARE
        complex_valued = e.field is Field.COMPLEX
        if name in side.called:
            out = self._array(name)
            if complex_valued and name not in side.constants:
                out = side.moduli[name]
        elif name in side.updates:
            if side.updates[name].maximum:
                return REALS
            if name in self._nonneg:
                out = NONNEG
            elif isinstance(e, Ref) and e.at == Now(0):
                out = self._ask(e)
            else:
                assert isinstance(e, Ref)
                out = self._ask(Ref(name, e.over, e.kind, e.when, Now(0)))
            out = self._bounded(name, out, complex_valued)
        else:
            out = self._ask(side.definitions[name].value)
            out = self._bounded(name, out, complex_valued)
        return out if inside_of(e) else out.hull(_ZERO)

    def _bounded(self, name: str, out: Interval, complex_valued: bool) -> Interval:
        """What the domain says of a definition besides."""
        known = self._side.moduli[name] if complex_valued else self._side.promised[name]
        return _meet(out, known)

    def _past(self, e: Past) -> Interval:
        """A sum over the past."""
        if not is_causal(e):
            return REALS if e.field is Field.REAL else NONNEG
        high = INF
        try:
            form = self._get(Magnitude(self._second, e))
            assert isinstance(form, Form)
            if form.plain is not None:
                high = to_float(form.plain)
        except Obstacle:
            pass
        if e.field is Field.COMPLEX:
            return _upto(high)
        body = self.of(e.body)
        if body.low < 0:
            return Interval(-high, high)
        now = e.relation is Relation.UP_TO and e.lag == 0
        return Interval(self._at_once(e.body) if now else 0.0, high)

    def _at_once(self, body: Expr) -> float:
        """A lower bound on a summand that is at least 0, at the token itself."""
        parts = body.args if isinstance(body, Mul) else (body,)
        kept = [x for x in parts if not _is_one_at_once(x)]
        return max(reduce(times, map(self.of, kept), ONE).low, 0.0)


def _is_one_at_once(e: Expr) -> bool:
    """Whether a factor of a summand is 1 where the lag is 0."""
    match e:
        case Pow(_, Lag(constant=0) as lag):
            return _to_time(lag)
    return False


def inside_of(e: Param | Ref) -> bool:
    """Returns whether a name is read within the sequence; outside it is 0."""
    return isinstance(e, Param) or inside(e)


def above_zero(a: Interval) -> bool:
    """Returns whether all of an interval is positive."""
    return a.low > 0 or (a.low == 0 and a.open_low)


def _upto(high: float) -> Interval:
    return Interval(0.0, high)


def _meet(a: Interval, b: Interval) -> Interval:
    """The intersection of two intervals that hold one value; either where rounding parts them."""
    if max(a.low, b.low) > min(a.high, b.high):
        return a
    return a.meet(b)


def _squared(e: Expr) -> Expr | None:
    """What an expression is the square of, where it is written as one."""
    match e:
        case Pow(base, Num(value)) if value == 2:
            return base
        case Mul((x, y)) if x is y:
            return x
    return None


def from_past(lag: Lag) -> bool:
    """Returns whether a lag is i - j with nothing taken away, which is at least 0 where j ≤ i."""
    return lag.constant >= 0 and _to_time(lag)


def _to_time(lag: Lag) -> bool:
    """Whether a lag is one from a token of the past to the present one, up to a constant."""
    coefficients = dict(lag.terms)
    return coefficients.pop(TIME, 0) == 1 and list(coefficients.values()) == [-1]


def is_causal(e: Past) -> bool:
    """Returns whether a sum runs over tokens up to the present one, or one before it."""
    return e.relation in (Relation.UP_TO, Relation.BEFORE) and e.outer is None and e.lag >= 0


def _falling(base: Interval) -> Interval:
    """Powers of a base to a lag that is at least 0."""
    if base.low < 0:
        return REALS
    if base.high <= 1:
        return Interval(0.0, 1.0, open_low=above_zero(base))
    return Interval(0.0, INF, open_low=above_zero(base))


def _series(order: int, x: Interval) -> Interval:
    """Σ_{r ≤ order} x^r / r!, which grows with x where x ≥ 0, and everywhere for odd orders."""
    terms, scale = [ONE], Fraction(1)
    for r in range(1, order + 1):
        scale /= r
        terms.append(times(power(x, Fraction(r)), exactly(scale)))
    return reduce(plus, terms)


def weighted(numerator: Expr, denominator: Expr) -> tuple[Expr, Expr] | None:
    """Returns (weights, values) of a mean over the past, the quotient of two sums, if it is one."""
    match numerator, denominator:
        case Past(body=top), Past(body=below):
            pass
        case _:
            return None
    same = (numerator.var, numerator.relation, numerator.lag, numerator.outer)
    if same != (denominator.var, denominator.relation, denominator.lag, denominator.outer):
        return None
    if not is_causal(numerator):
        return None
    left = list(top.args) if isinstance(top, Mul) else [top]
    for factor in below.args if isinstance(below, Mul) else (below,):
        if factor not in left:
            return None
        left.remove(factor)
    return below, mul(*left)
