"""L1, separating a summand: body(i, j) = Σ terms of (function of i) × (function of j) × (decay).

`Separator.terms` walks a summand and returns `Separated` terms, or raises `NotSeparable` with the
factor that does not separate. Powers and truncated series become products, exponentials split over
sums, Re and Im are carried along.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import factorial

from dsfc.derive.model import Model
from dsfc.derive.separated import (
    LagFactor,
    RunFactor,
    Separated,
    broadcast,
    conjugated,
    contracted,
    map_factor,
    product,
    reciprocal,
    scaled,
    with_part,
    without_part,
)
from dsfc.derive.times import Times, lag_between, retimed
from dsfc.diagnostics.catalogue import Limit
from dsfc.diagnostics.report import DiagnosticError
from dsfc.expr.build import ONE, ZERO, add, div, mul, num, ones, power, prim, walk
from dsfc.expr.over_time import Lag, Past, Relation, Run, index_name
from dsfc.expr.reserved_names import TIME
from dsfc.expr.tree import (
    Add,
    Axis,
    Div,
    Expr,
    Field,
    Map,
    Mul,
    Now,
    Num,
    Pow,
    Prim,
    Reduce,
    Reduction,
    Rename,
    Series,
    Size,
)
from dsfc.system.ir import ComplexPart

Terms = list[Separated]


class NotSeparable(Exception):
    """A factor that is no sum of (function of i) × (function of j) × decay.

    Attributes:
        culprit: the factor.
        why: the reason, as a clause; None when the factor itself says it.
    """

    def __init__(self, culprit: Expr, why: str | None = None) -> None:
        """Keeps the culprit and the reason."""
        self.culprit = culprit
        self.why = why
        super().__init__(culprit)


@dataclass(frozen=True, slots=True)
class _Piece:
    """A summand of an exponent: arg, or i·arg when `imaginary`."""

    arg: Expr
    imaginary: bool

    def exponential(self, arg: Expr) -> Expr:
        return prim("cis" if self.imaginary else "exp", arg)


class Separator:
    """Separates the summand of one sum over time."""

    def __init__(self, past: Past, model: Model, times: Times) -> None:
        """Takes the sum whose body is to be separated."""
        self.past = past
        self.model = model
        self.times = times
        self.backward = past.relation in (Relation.FROM, Relation.AFTER)
        self.outer = past.outer or TIME

    def terms(self, e: Expr) -> Terms:
        """Returns the separated terms of a part of the summand.

        Raises:
            NotSeparable: there are none.
            DiagnosticError: there are more than the limits allow.
        """
        free = self.times.free(e)
        if self.past.var not in free:
            return [Separated(now=e)]
        if free == {self.past.var}:
            if any(isinstance(x, Lag | Run) for x in walk(e)):
                raise NotSeparable(e, "it grows with the position")
            return [Separated(then=e)]
        out = self._both(e)
        if len(out) > self.model.limits.expansion_terms:
            raise DiagnosticError(
                [
                    Limit(
                        self.model.mixer.span or self.model.span_of(self.model.mixer.output),
                        what="terms of a separated sum",
                        size=str(len(out)),
                        bound=str(self.model.limits.expansion_terms),
                    )
                ]
            )
        return out

    def _both(self, e: Expr) -> Terms:
        match e:
            case Add(args):
                return [broadcast(t, e.axes, self._copy) for a in args for t in self.terms(a)]
            case Mul(args):
                return self._product(args)
            case Div(numerator, denominator):
                return self._quotient(e, numerator, denominator)
            case Pow(base, exponent):
                return self._power(e, base, exponent)
            case Series(order, arg):
                return self._series(order, arg)
            case Reduce(how, axis, arg):
                return self._reduction(e, how, axis, arg)
            case Prim():
                return self._primitive(e)
            case Map():
                return [self._mapped(e, t) for t in self._linear(e.map.field, self.terms(e.arg))]
            case Rename(old, new, arg):
                return [self._renamed(t, old, new) for t in self.terms(arg)]
            case Run():
                return [self._run(e)]
        raise NotSeparable(e)

    def _copy(self, axis: Axis, taken: frozenset[Axis]) -> Axis:
        return self.model.copy_of(axis, taken)

    def _times(self, left: Terms, right: Terms) -> Terms:
        limit = self.model.limits.expansion_terms
        out: Terms = []
        for a in left:
            for b in right:
                out.extend(product(a, b, self._copy))
            if len(out) > limit:
                break
        return out

    def _product(self, args: tuple[Expr, ...]) -> Terms:
        out = self.terms(args[0])
        for a in args[1:]:
            out = self._times(out, self.terms(a))
        return out

    def _quotient(self, e: Div, numerator: Expr, denominator: Expr) -> Terms:
        below = self.terms(denominator)
        inverse = reciprocal(below[0]) if len(below) == 1 else None
        if inverse is None:
            raise NotSeparable(div(ONE, denominator))
        return self._times(self.terms(numerator), [inverse])

    # --- powers -----------------------------------------------------------------------------------

    def _power(self, e: Pow, base: Expr, exponent: Expr) -> Terms:
        if self.times.free(exponent):
            if self.times.free(base):
                raise NotSeparable(e, "the base of a lag power varies in time")
            return [self._lag_power(e, base, exponent)]
        if isinstance(exponent, Num) and exponent.value.denominator == 1:
            order = int(exponent.value)
            if order >= 0:
                powered = self._repeated(self.terms(base), order)
                return [broadcast(t, e.axes, self._copy) for t in powered]
            inner = self.terms(base)
            inverse = reciprocal(inner[0]) if len(inner) == 1 else None
            if inverse is not None:
                return self._repeated([inverse], -order)
        raise NotSeparable(e)

    def _repeated(self, terms: Terms, order: int) -> Terms:
        out: Terms = [Separated()]
        for _ in range(order):
            out = self._times(out, terms)
        return out

    def _series(self, order: int, arg: Expr) -> Terms:
        inner = self.terms(arg)
        power_: Terms = [broadcast(Separated(), arg.axes, self._copy)]
        out = list(power_)
        for r in range(1, order + 1):
            power_ = self._times(power_, inner) if r > 1 else list(inner)
            out.extend(scaled(t, num(Fraction(1, factorial(r)))) for t in power_)
        return out

    def _lag_power(self, e: Expr, base: Expr, exponent: Expr) -> Separated:
        """The power base ^ lag, the lag in terms of the distance to the outer index."""
        lag = _lag_of(exponent)
        if lag is None:
            raise NotSeparable(e)
        coefficient = dict(lag.terms).get(self.past.var, 0)
        rest: dict[str, int] = {v: c for v, c in lag.terms if v != self.past.var}
        rest[self.outer] = rest.get(self.outer, 0) + coefficient
        if sum(rest.values()):
            raise NotSeparable(e, "the exponent grows with the position")
        # coefficient · (j − outer) is `steps` times the distance, which is never negative.
        steps = coefficient if self.backward else -coefficient
        other = lag_between(tuple(rest.items()), 0)
        now: Expr = ONE if other is None else Pow(base, other)
        if abs(steps) == 1:
            factor = LagFactor(integer_power(base, steps), steps * lag.constant)
            return Separated(now=now, lags=(factor,))
        now = mul(integer_power(base, lag.constant), now)
        return Separated(now=now, lags=(LagFactor(integer_power(base, steps), 0),))

    # --- primitives -------------------------------------------------------------------------------

    def _primitive(self, e: Prim) -> Terms:
        match e.name:
            case "exp":
                return self._exponential(e, self._pieces(e.args[0], False))
            case "cis":
                return self._exponential(e, self._pieces(e.args[0], True))
            case "re" | "im":
                part = ComplexPart.RE if e.name == "re" else ComplexPart.IM
                terms = (with_part(t, part) for t in self.terms(e.args[0]))
                return [t for t in terms if t is not None] or [
                    Separated(now=mul(ZERO, ones(e.axes)))
                ]
            case "conj":
                return [conjugated(t) for t in self.terms(e.args[0])]
            case "cplx":
                re, im = (self.terms(a) for a in e.args)
                unit = Separated(now=prim("cplx", num(0), ONE))
                parts = [*re, *self._times(im, [unit])]
                return [broadcast(t, e.axes, self._copy) for t in self._linear(e.field, parts)]
        raise NotSeparable(e)

    def _pieces(self, e: Expr, imaginary: bool) -> list[_Piece]:
        """The summands of an exponent, numbers and one-sided factors distributed."""
        if self.past.var not in self.times.free(e):
            return [_Piece(e, imaginary)]
        match e:
            case Add(args):
                return [p for a in args for p in self._pieces(a, imaginary)]
            case Div(numerator, denominator) if not self._varies(denominator):
                return self._pieces(mul(div(ONE, denominator), numerator), imaginary)
            case Mul(args):
                sums = [a for a in args if isinstance(a, Add) and self._varies(a)]
                if len(sums) == 1:
                    rest = mul(*(a for a in args if a is not sums[0]))
                    return [p for t in sums[0].args for p in self._pieces(mul(rest, t), imaginary)]
            case Prim("cplx", (re, im)) if not imaginary:
                return [*self._pieces(re, False), *self._pieces(im, True)]
        return [_Piece(e, imaginary)]

    def _varies(self, e: Expr) -> bool:
        return bool(self.times.free(e))

    def _exponential(self, e: Prim, pieces: list[_Piece]) -> Terms:
        now: list[_Piece] = []
        then: list[_Piece] = []
        out = Separated()
        for p in pieces:
            free = self.times.free(p.arg)
            if self.past.var not in free:
                now.append(p)
            elif free == {self.past.var} and not _has_lag(p.arg):
                then.append(p)
            else:
                lag, rate = self._rate(e, p.arg)
                (out,) = product(out, self._lag_power(e, p.exponential(rate), lag), self._copy)
        sides = Separated(now=_exponentials(now), then=_exponentials(then))
        (out,) = product(sides, out, self._copy)
        return [broadcast(out, e.axes, self._copy)]

    def _rate(self, e: Expr, arg: Expr) -> tuple[Expr, Expr]:
        """Splits a summand of an exponent into a lag and a factor without time."""
        args = arg.args if isinstance(arg, Mul) else (arg,)
        lags = [a for a in args if _lag_of(a) is not None and self._varies(a)]
        rest = [a for a in args if a not in lags]
        if len(lags) != 1 or any(self._varies(a) for a in rest):
            raise NotSeparable(e)
        return lags[0], mul(*rest)

    # --- linear nodes -----------------------------------------------------------------------------

    def _reduction(self, e: Reduce, how: Reduction, axis: Axis, arg: Expr) -> Terms:
        if how is Reduction.MAX:
            raise NotSeparable(e)
        inner = [broadcast(t, arg.axes, self._copy) for t in self.terms(arg)]
        out = [contracted(t, axis) for t in inner]
        if how is Reduction.MEAN:
            out = [scaled(t, div(ONE, Size(axis))) for t in out]
        return out

    def _linear(self, field: Field, terms: Terms) -> Terms:
        """Terms that a factor of this field may be applied to: no part under a complex factor."""
        if field is Field.REAL:
            return terms
        return [x for t in terms for x in without_part(t)]

    def _mapped(self, e: Map, term: Separated) -> Separated:
        m = e.map
        source, targets = frozenset(m.source), frozenset(m.target) | frozenset(m.each)
        for axis in sorted(term.over & (source | targets)):
            term = term.renamed(axis, self._copy(axis, term.all_axes | source | targets))
        if source & term.decay_axes:  # the map does not commute with what decays along its source
            raise NotSeparable(e)
        if not source & term.then.axes:
            return replace(term, now=map_factor(m, term.now))
        if source & term.now.axes:
            raise NotSeparable(e)
        return replace(term, then=map_factor(m, term.then))

    def _renamed(self, term: Separated, old: Axis, new: Axis) -> Separated:
        if new in term.over:
            term = term.renamed(new, self._copy(new, term.all_axes | {old}))
        return term.renamed(old, new)

    def _run(self, e: Run) -> Separated:
        then, now = (e.high, e.low) if self.backward else (e.low, e.high)
        if index_name(then) != self.past.var or index_name(now) != self.outer:
            raise NotSeparable(e)
        if self.times.free(e.arg) - {e.var}:
            raise NotSeparable(e, "the factor of a running product depends on more than its index")
        return Separated(runs=(RunFactor(retimed(e.arg, e.var, Now), now.lag, then.lag),))


def _exponentials(pieces: list[_Piece]) -> Expr:
    real = [p.arg for p in pieces if not p.imaginary]
    turning = [p.arg for p in pieces if p.imaginary]
    return mul(
        *([prim("exp", add(*real))] if real else []),
        *([prim("cis", add(*turning))] if turning else []),
    )


def integer_power(base: Expr, exponent: int) -> Expr:
    """Returns an integer power; exponentials take it into their argument."""
    if exponent == 0:
        return ones(base.axes)
    if isinstance(base, Prim) and base.name in ("exp", "cis"):
        return base if exponent == 1 else prim(base.name, mul(num(exponent), base.args[0]))
    return power(base, num(exponent))


def _has_lag(e: Expr) -> bool:
    return any(isinstance(x, Lag) for x in walk(e))


def _lag_of(e: Expr) -> Lag | None:
    """Folds numbers and lags into one lag; None when the expression is something else."""
    match e:
        case Lag():
            return e
        case Num(value) if value.denominator == 1:
            return Lag((), int(value))
        case Add(args):
            parts = [_lag_of(a) for a in args]
            if any(p is None for p in parts):
                return None
            terms: dict[str, int] = {}
            for p in parts:
                for v, c in p.terms if p else ():
                    terms[v] = terms.get(v, 0) + c
            return Lag(tuple(sorted(terms.items())), sum(p.constant for p in parts if p))
        case Mul(args):
            out = Lag((), 1)
            for a in args:
                p = _lag_of(a)
                if p is None or (p.terms and out.terms):
                    return None
                varying, scale = (p, out.constant) if p.terms else (out, p.constant)
                terms_ = tuple((v, c * scale) for v, c in varying.terms)
                out = Lag(terms_, varying.constant * scale)
            return out
    return None
