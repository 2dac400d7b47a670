"""One term of a separated summand, and the algebra of such terms.

    part( Σ_over( now_i · then_j · Π base^(distance + shift) · Π run ) )

where the distance is i − j for sums over the past and j − i for sums over the future, and a run is
a product over the tokens between. Terms can be multiplied, conjugated, renamed and contracted;
when a product contracts an axis twice, the second contraction gets a copy of the axis.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction

from dsfc.expr.build import ONE, add, div, mul, neg, num, prim, total
from dsfc.expr.tree import Axis, Expr, Field, LinearMap, Map, Mul, Ones, Rename, Size
from dsfc.system.ir import ComplexPart

HALF = num(Fraction(1, 2))


@dataclass(frozen=True, slots=True)
class LagFactor:
    """base ^ (distance + shift), base without time."""

    base: Expr
    shift: int


@dataclass(frozen=True, slots=True)
class RunFactor:
    """Π arg over the tokens between j and i.

    Attributes:
        arg: the factor, at `Now(0)`.
        now_lag: the run ends (or, backwards, starts) at i − now_lag.
        then_lag: the other end is j − then_lag.
    """

    arg: Expr
    now_lag: int
    then_lag: int


@dataclass(frozen=True, slots=True)
class Separated:
    """A term; see the module docstring.

    Attributes:
        now: factor at the outer index.
        then: factor at the summed index.
        lags: powers of the distance.
        runs: products over the tokens between.
        over: axes contracted; each is an axis of `then`, a lag base or a run.
        part: Re or Im taken of the whole, None for neither.
    """

    now: Expr = ONE
    then: Expr = ONE
    lags: tuple[LagFactor, ...] = ()
    runs: tuple[RunFactor, ...] = ()
    over: frozenset[Axis] = frozenset()
    part: ComplexPart | None = None

    @property
    def decay_axes(self) -> frozenset[Axis]:
        """Axes of the powers of the distance and of the products over the tokens between."""
        return _axes((*(x.base for x in self.lags), *(x.arg for x in self.runs)))

    @property
    def state_axes(self) -> frozenset[Axis]:
        """Axes of the state that this term needs."""
        return self.then.axes | self.decay_axes

    @property
    def all_axes(self) -> frozenset[Axis]:
        """Axes of the value and contracted ones."""
        return self.now.axes | self.state_axes | self.over

    @property
    def axes(self) -> frozenset[Axis]:
        """Axes of the value."""
        return (self.now.axes | self.state_axes) - self.over

    @property
    def inner_field(self) -> Field:
        """The field before a part is taken."""
        own = (self.now, self.then, *(x.base for x in self.lags), *(x.arg for x in self.runs))
        return max(e.field for e in own)

    @property
    def field(self) -> Field:
        """The field of the value."""
        return Field.REAL if self.part else self.inner_field

    def mapped(self, change: Callable[[Expr], Expr]) -> Separated:
        """Returns the term with a change made to each of its expressions."""
        return replace(
            self,
            now=change(self.now),
            then=change(self.then),
            lags=tuple(LagFactor(change(x.base), x.shift) for x in self.lags),
            runs=tuple(RunFactor(change(x.arg), x.now_lag, x.then_lag) for x in self.runs),
        )

    def renamed(self, old: Axis, new: Axis) -> Separated:
        """Returns the term with an axis called differently, contracted or not."""
        if old not in self.all_axes:
            return self
        out = self.mapped(lambda e: renamed(e, old, new))
        return replace(out, over=frozenset(new if a == old else a for a in self.over))


def _axes(exprs: Iterable[Expr]) -> frozenset[Axis]:
    return frozenset().union(*(e.axes for e in exprs))


def renamed(expr: Expr, old: Axis, new: Axis) -> Expr:
    """Returns the expression with an axis renamed, factor by factor."""
    if old not in expr.axes:
        return expr
    if isinstance(expr, Mul):
        return mul(*(renamed(a, old, new) for a in expr.args))
    if isinstance(expr, Ones):
        return Ones((expr.over - {old}) | {new})
    return Rename(old, new, expr)


def conjugate(expr: Expr) -> Expr:
    """Returns the complex conjugate, factor by factor."""
    if expr.field is Field.REAL:
        return expr
    if isinstance(expr, Mul):
        return mul(*(conjugate(a) for a in expr.args))
    return prim("conj", expr)


def conjugated(term: Separated) -> Separated:
    """Returns the complex conjugate of a term."""
    return term if term.part else term.mapped(conjugate)


def scaled(term: Separated, factor: Expr) -> Separated:
    """Returns the term times a factor at the outer index that keeps its part (a real one)."""
    return replace(term, now=mul(factor, term.now))


Copy = Callable[[Axis, frozenset[Axis]], Axis]


def product(a: Separated, b: Separated, copy: Copy) -> tuple[Separated, ...]:
    """Returns the product of two terms as terms.

    Re and Im are carried through products by

        Re a · Re b = ½ Re(ab + a b̄)   Re a · Im b = ½ Im(ab + ā b)   Im a · Im b = ½ Re(a b̄ − ab)

    and a part times a complex factor is written out as (z ± z̄)/2.

    Args:
        a: a term.
        b: a term.
        copy: gives a copy of an axis that is not among the axes passed to it.
    """
    a, b = _apart(a, b, copy)
    if a.part and b.part:
        return _product_of_parts(a, b)
    if a.part or b.part:
        whole, single = (a, b) if a.part else (b, a)
        if single.inner_field is Field.COMPLEX:
            left = without_part(a)
            return tuple(t for x in left for y in without_part(b) for t in (_times(x, y, None),))
        return (_times(a, b, whole.part),)
    return (_times(a, b, None),)


def _apart(a: Separated, b: Separated, copy: Copy) -> tuple[Separated, Separated]:
    """Renames contracted axes that the other term has too."""
    for axis in sorted((a.over | b.over) & a.all_axes & b.all_axes):
        new = copy(axis, a.all_axes | b.all_axes)
        if axis in b.over:
            b = b.renamed(axis, new)
        else:
            a = a.renamed(axis, new)
    return a, b


def _times(a: Separated, b: Separated, part: ComplexPart | None) -> Separated:
    return Separated(
        mul(a.now, b.now), mul(a.then, b.then), a.lags + b.lags, a.runs + b.runs,
        a.over | b.over, part,
    )  # fmt: skip


def _product_of_parts(a: Separated, b: Separated) -> tuple[Separated, ...]:
    bar = replace(conjugated(replace(b, part=None)), part=None)
    plain = replace(b, part=None)
    a_plain = replace(a, part=None)
    a_bar = conjugated(a_plain)
    signs: tuple[Expr, Expr]
    match a.part, b.part:
        case ComplexPart.RE, ComplexPart.RE:
            parts = (_times(a_plain, plain, ComplexPart.RE), _times(a_plain, bar, ComplexPart.RE))
            signs = (HALF, HALF)
        case ComplexPart.RE, ComplexPart.IM:
            parts = (_times(a_plain, plain, ComplexPart.IM), _times(a_bar, plain, ComplexPart.IM))
            signs = (HALF, HALF)
        case ComplexPart.IM, ComplexPart.RE:
            parts = (_times(a_plain, plain, ComplexPart.IM), _times(a_plain, bar, ComplexPart.IM))
            signs = (HALF, HALF)
        case _:
            parts = (_times(a_plain, bar, ComplexPart.RE), _times(a_plain, plain, ComplexPart.RE))
            signs = (HALF, neg(HALF))
    return tuple(scaled(t, s) for t, s in zip(parts, signs, strict=True))


def without_part(term: Separated) -> tuple[Separated, ...]:
    """Returns terms without Re or Im that add up to the term: Re z = ½z + ½z̄."""
    if term.part is None:
        return (term,)
    plain = replace(term, part=None)
    bar = conjugated(plain)
    if term.part is ComplexPart.RE:
        return scaled(plain, HALF), scaled(bar, HALF)
    factor = prim("cplx", num(0), neg(HALF))
    return scaled(plain, factor), scaled(bar, neg(factor))


def with_part(term: Separated, part: ComplexPart) -> Separated | None:
    """Returns Re or Im of a term; None when it is zero (Im of a real value)."""
    if term.field is Field.REAL:
        return term if part is ComplexPart.RE else None
    return replace(term, part=part)


def contracted(term: Separated, axis: Axis) -> Separated:
    """Returns Σ over an axis of the value."""
    if axis in term.state_axes:
        return replace(term, over=term.over | {axis})
    return replace(term, now=sum_over(axis, term.now))


def sum_over(axis: Axis, expr: Expr) -> Expr:
    """Returns Σ over an axis; factors without it are taken out, a missing axis counts its size."""
    args = expr.args if isinstance(expr, Mul) else (expr,)
    inside = [a for a in args if axis in a.axes]
    outside = [a for a in args if axis not in a.axes]
    if not inside:
        return mul(Size(axis), *outside)
    if all(isinstance(a, Ones) for a in inside):
        kept = frozenset().union(*(a.axes for a in inside)) - {axis}
        return mul(Size(axis), *outside, *([Ones(kept)] if kept else []))
    return mul(*outside, total([axis], mul(*inside)))


def broadcast(term: Separated, axes: frozenset[Axis], copy: Copy) -> Separated:
    """Returns the term with at least these axes."""
    missing = axes - term.axes
    if not missing:
        return term
    (out,) = product(term, Separated(now=Ones(missing)), copy)
    return out


def reciprocal(term: Separated) -> Separated | None:
    """Returns 1 / term; None for a term that is a sum or a part."""
    if term.over or term.part:
        return None
    return term.mapped(lambda e: div(ONE, e))


def map_factor(map: LinearMap, expr: Expr) -> Expr:
    """Returns a linear map applied to a product: to the factors with its source axes only."""
    args = expr.args if isinstance(expr, Mul) else (expr,)
    source = frozenset(map.source)
    inside = [a for a in args if a.axes & source]
    outside = [a for a in args if not a.axes & source]
    return mul(*outside, Map(map, mul(*inside)))


def separated_sum(terms: Iterable[Expr]) -> Expr:
    """Returns the sum of the values that terms were replaced by, with equal axes."""
    values = list(terms)
    axes = frozenset().union(*(v.axes for v in values)) if values else frozenset()
    return add(*(v if v.axes == axes else mul(v, Ones(axes - v.axes)) for v in values))
