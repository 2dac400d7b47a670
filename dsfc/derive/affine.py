"""L3, affine analysis: a value as Σ terms(states) + remainder without states.

    lin(S[i-1])        one term            lin(definition)   lin of its value
    lin(a + b)         both                lin(c * a)        c multiplies `left`
    lin(Σ_a left · Σ_over(right · S))      see `_contracted`

Everything else applied to a state is not affine: `NotAffine` names the node and what it is applied
to. Whether that is an error or a node of the read-out is for the caller to say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from dsfc.derive.model import Model
from dsfc.derive.separated import map_factor, renamed, sum_over
from dsfc.expr.build import ONE, add, div, is_one, mul, ones, shift, sub
from dsfc.expr.reserved_names import first
from dsfc.expr.tree import (
    Add,
    Axis,
    Div,
    Expr,
    LinearMap,
    Map,
    Mul,
    Now,
    Reduce,
    Reduction,
    Ref,
    Rename,
    Size,
    Time,
)
from dsfc.system.ir import Term


class NotAffine(Exception):
    """A value is not affine in the states.

    Attributes:
        node: the expression that is not.
        factors: for a product of two dependent factors, those; empty otherwise.
        why: "product", "function", "lag" (too far back), "axes" (no term can hold it) or "end"
            (it is 0 after the last token, where the state may not be).
    """

    def __init__(self, node: Expr, why: str, factors: tuple[Expr, ...] = ()) -> None:
        """Keeps the culprit."""
        self.node = node
        self.why = why
        self.factors = factors
        super().__init__(why)


@dataclass(frozen=True, slots=True)
class Affine:
    """Σ terms + rest.

    Attributes:
        terms: linear operators applied to states.
        rest: what depends on none of them; None for nothing.
    """

    terms: tuple[Term, ...] = ()
    rest: Expr | None = None


def live_axes(term: Term, axes: frozenset[Axis]) -> frozenset[Axis]:
    """Returns the axes of the source that a term keeps; `axes` are those of the source."""
    if term.matrix is not None:
        axes = (axes - frozenset(term.matrix.source)) | frozenset(term.matrix.target)
        axes |= frozenset(term.matrix.each)
    return axes - term.over


def further_axes(term: Term, axes: frozenset[Axis]) -> frozenset[Axis]:
    """Returns the axes of a term's right side that its source, of axes `axes`, has not."""
    return term.right.axes - term.over - live_axes(term, axes)


def scaled(term: Term, factor: Expr, axes: frozenset[Axis]) -> Term:
    """Returns a term times a factor of its value; `axes` are those of the source.

    Raises:
        NotAffine: no term holds it.
    """
    return normal_term(replace(term, left=mul(factor, term.left)), axes)


def normal_term(term: Term, axes: frozenset[Axis]) -> Term:
    """Returns an equal term that keeps I3 of a System.

    Where the left side re-introduces an axis, the right side has no further ones: factors without
    contracted axes leave the sum for that.

    Args:
        term: a term.
        axes: of its source.

    Raises:
        NotAffine: a contracted factor itself has further axes.
    """
    further = further_axes(term, axes)
    if not further or not term.over & term.left.axes:
        return term
    out = [f for f in factors_of(term.right) if f.axes & further and not f.axes & term.over]
    right = [f for f in factors_of(term.right) if f not in out]
    if any(f.axes & further for f in right):
        raise NotAffine(mul(term.left, *right), "axes")
    return replace(term, left=mul(*out, term.left), right=mul(*right))


def factors_of(expr: Expr) -> tuple[Expr, ...]:
    """Returns the factors of a product, the expression itself when it is none."""
    return expr.args if isinstance(expr, Mul) else (expr,)


class Analysis:
    """Affine analysis over a set of states.

    Attributes:
        model: definitions and states.
        over: names of the states that are unknowns.
        shifts: whether definitions that depend on them may be read at a lag (updates); else such
            reads are left to the remainder (read-outs), where they become streams.
        present: whether an unknown at the present token is a term (read-outs, delayed reads); else
            its own update is put in (updates).
        inner: (definition, state) when the definition is itself the unknown: the value of the state
            after the factors of a chain that come before.
    """

    def __init__(
        self,
        model: Model,
        over: Iterable[str],
        *,
        shifts: bool,
        present: bool = True,
        inner: tuple[str, str] | None = None,
    ) -> None:
        """Fixes the unknowns."""
        self.model = model
        self.over = frozenset(over)
        self.shifts = shifts
        self.present = present
        self.inner = inner
        self._done: dict[Expr, Affine | NotAffine] = {}
        self._version = model.version
        self._before: Analysis | None = None

    def depends(self, e: Expr) -> bool:
        """Returns whether a value depends on an unknown."""
        return bool(self.model.reach(e) & self.over)

    def of(self, e: Expr) -> Affine:
        """Returns the affine form of a value.

        Raises:
            NotAffine: it has none.
        """
        if self._version != self.model.version:
            self._done.clear()
            self._version = self.model.version
        form = self._done.get(e)
        if form is None:
            try:
                form = self._find(e)
            except NotAffine as problem:
                form = problem
            self._done[e] = form
        if isinstance(form, NotAffine):
            raise form
        return form

    def _find(self, e: Expr) -> Affine:
        if isinstance(e, Ref):
            return self._ref(e)
        if not self.depends(e):
            return Affine(rest=e)
        match e:
            case Add(args):
                # What does not depend stays one value: `elu(k) + 1` is one factor of a drive.
                free = [a for a in args if not self.depends(a)]
                forms = [self.of(a) for a in args if self.depends(a)]
                forms += [Affine(rest=add(*free))] if free else []
                return self._sum([broadcast(f, e.axes, self._axes) for f in forms])
            case Mul(args):
                return self._product(e, args)
            case Div(numerator, denominator):
                if self.depends(denominator):
                    both = (numerator,) if self.depends(numerator) else ()
                    raise NotAffine(e, "product" if both else "function", (*both, denominator))
                return self._times(self.of(numerator), div(ONE, denominator))
            case Reduce(how, axis, arg) if how is not Reduction.MAX:
                form = self._reduced(axis, broadcast(self.of(arg), arg.axes, self._axes))
                mean = how is Reduction.MEAN
                return self._times(form, div(ONE, Size(axis))) if mean else form
            case Map(map=m, arg=arg):
                return self._mapped(e, m, self.of(arg))
            case Rename(old, new, arg):
                return self._renamed(e, self.of(arg), old, new)
        raise NotAffine(e, "function")

    # --- leaves -----------------------------------------------------------------------------------

    def _ref(self, e: Ref) -> Affine:
        if self.inner is not None and e.name == self.inner[0] and e.at == Now(0):
            return Affine((Term(self.inner[1], 0, ONE, frozenset(), ONE),))
        if e.name in self.over and e.name in self.model.states:
            return self._state(e)
        value = self.model.value(e.name)
        if value is None or not self.depends(e):
            return Affine(rest=e)
        if not isinstance(e.at, Now):
            return Affine(rest=e)
        if e.at.lag == 0:
            return self.of(value)
        if not self.shifts:
            return Affine(rest=e)
        if self._before is None:
            self._before = Analysis(self.model, self.over, shifts=True)
        return self._delayed(e, self._before.of(value), e.at.lag)

    def _state(self, e: Ref) -> Affine:
        s = self.model.states[e.name]
        if not isinstance(e.at, Now):
            return Affine(rest=e)
        if not self.present and e.at.lag == 0 and s.flow is None:
            # An update that reads another state of its stage at the same time: put its update in.
            assert s.update is not None
            return self.of(s.update)
        if e.at.lag in (0, s.step):
            return Affine((Term(e.name, e.at.lag, ONE, frozenset(), ONE),))
        if self.shifts:
            raise NotAffine(e, "lag")
        return Affine(rest=e)

    def _delayed(self, e: Ref, form: Affine, lag: int) -> Affine:
        terms = []
        for t in form.terms:
            if t.lag or lag != self.model.states[t.source].step:
                raise NotAffine(e, "lag")
            left, right = self._value_at(t.left, lag), self._value_at(t.right, lag)
            if left.time is Time.CONST and right.time is Time.CONST:
                left = mul(_inside(e, lag), left)
            terms.append(replace(t, lag=lag, left=left, right=right))
        rest = None if form.rest is None else self._value_at(form.rest, lag)
        if rest is not None and rest.time is Time.CONST:
            rest = mul(_inside(e, lag), rest)
        return Affine(tuple(terms), rest)

    def _value_at(self, e: Expr, lag: int) -> Expr:
        """The value of an expression `lag` steps before, 0 outside; a constant stays what it is."""
        if e.time is Time.CONST:
            return e
        if isinstance(e, Ref) and self._is_0_outside(e, lag):
            return shift(e, lag)
        if isinstance(e, Mul):
            return mul(*(self._value_at(a, lag) for a in e.args))
        name = self.model.define("delayed", e)
        return Ref(name, e.axes, e.field, e.time, Now(lag))

    def _is_0_outside(self, e: Ref, lag: int) -> bool:
        """Whether a name read `lag` steps before is 0 where the present one would be outside."""
        if e.name in self.model.states or e.name in self.model.maxima:
            return False  # it has an initial value there
        return isinstance(e.at, Now) and e.at.lag * lag >= 0

    def _axes(self, term: Term) -> frozenset[Axis]:
        return frozenset(self.model.states[term.source].axes)

    # --- sums and products ------------------------------------------------------------------------

    def _sum(self, forms: list[Affine]) -> Affine:
        rest = [f.rest for f in forms if f.rest is not None]
        return Affine(merged(t for f in forms for t in f.terms), add(*rest) if rest else None)

    def _times(self, form: Affine, factor: Expr) -> Affine:
        if is_one(factor):
            return form
        terms = tuple(scaled(t, factor, self._axes(t)) for t in form.terms)
        return Affine(terms, None if form.rest is None else mul(factor, form.rest))

    def _product(self, e: Mul, args: tuple[Expr, ...]) -> Affine:
        dependent = tuple(a for a in args if self.depends(a))
        if len(dependent) > 1:
            raise NotAffine(e, "product", dependent)
        form = self.of(dependent[0])
        free = tuple(a for a in args if a is not dependent[0])
        return self._times(form, mul(*free))

    # --- contractions -----------------------------------------------------------------------------

    def _reduced(self, axis: Axis, form: Affine) -> Affine:
        terms = merged(self._contracted(axis, t) for t in form.terms)
        return Affine(terms, None if form.rest is None else sum_over(axis, form.rest))

    def _contracted(self, axis: Axis, t: Term) -> Term:
        """Σ_axis of left · Σ_over(right · source)."""
        live = live_axes(t, self._axes(t))
        if axis not in live and axis not in further_axes(t, self._axes(t)):
            return replace(t, left=sum_over(axis, t.left))
        inside: list[Expr] = []
        outside: list[Expr] = []
        for f in factors_of(t.left):
            below = axis in f.axes or (axis in live and _small(f, axis) and not f.axes & t.over)
            (inside if below else outside).append(f)
        for f in inside:
            if f.axes & t.over:
                raise NotAffine(f, "axes")
        left, right = mul(*outside), mul(*inside, t.right)
        if axis not in live:  # of a group of queries over one key: the queries are added up
            return replace(t, left=left, right=sum_over(axis, right))
        out = replace(t, left=left, over=t.over | {axis}, right=right)
        return normal_term(out, self._axes(t))

    def _mapped(self, e: Map, m: LinearMap, form: Affine) -> Affine:
        terms = tuple(self._mapped_term(e, m, t) for t in form.terms)
        return Affine(merged(terms), None if form.rest is None else map_factor(m, form.rest))

    def _mapped_term(self, e: Map, m: LinearMap, t: Term) -> Term:
        source = frozenset(m.source)
        live = live_axes(t, self._axes(t))
        held = live | further_axes(t, self._axes(t))
        if not source & held and source <= t.left.axes:
            return normal_term(replace(t, left=map_factor(m, t.left)), self._axes(t))
        touched = source | frozenset(m.target) | frozenset(m.each)
        apart = not touched & (t.left.axes | t.right.axes | t.over)
        # The map is applied to the state first, so it must commute with what the term does.
        if t.matrix is not None or not source <= live or not apart:
            raise NotAffine(e, "axes")
        return replace(t, matrix=m)

    def _renamed(self, e: Rename, form: Affine, old: Axis, new: Axis) -> Affine:
        terms = []
        for t in form.terms:
            if old in live_axes(t, self._axes(t)) or old in t.right.axes - t.over:
                raise NotAffine(e, "axes")
            terms.append(normal_term(replace(t, left=renamed(t.left, old, new)), self._axes(t)))
        rest = None if form.rest is None else renamed(form.rest, old, new)
        return Affine(tuple(terms), rest)


def _inside(e: Ref, lag: int) -> Expr:
    """1 where the token `lag` steps before is one of the sequence, else 0.

    Raises:
        NotAffine: it is a later one; which token is the last no name says.
    """
    if lag < 0:
        raise NotAffine(e, "end")
    return sub(ONE, add(*(first(k) for k in range(lag))))


def _small(factor: Expr, axis: Axis) -> bool:
    """Whether a factor without the contracted axis goes under the sum: a decay per head or less.

    `k ⊗ (k · (α * S))` then has α on the right, and its left vector stays the key.
    """
    return factor.time is not Time.CONST and all(a.heads for a in factor.axes - {axis})


def broadcast(
    form: Affine, axes: frozenset[Axis], source: Callable[[Term], frozenset[Axis]]
) -> Affine:
    """Returns the form with exactly these axes, where a number stood for a tensor."""
    terms = []
    for t in form.terms:
        missing = axes - live_axes(t, source(t)) - t.left.axes - (t.right.axes - t.over)
        terms.append(scaled(t, ones(missing), source(t)) if missing else t)
    rest = form.rest
    if rest is not None:
        rest = mul(rest, ones(axes - rest.axes)) if axes - rest.axes else rest
    return Affine(tuple(terms), rest)


def merged(terms: Iterable[Term]) -> tuple[Term, ...]:
    """Returns the terms with those of equal source, contraction and matrix added up."""
    out: dict[tuple[object, ...], Term] = {}
    for t in terms:
        key = (t.source, t.lag, t.over, t.right, t.matrix)
        have = out.get(key)
        out[key] = t if have is None else replace(have, left=_plus(have.left, t.left))
    return tuple(out.values())


def _plus(a: Expr, b: Expr) -> Expr:
    axes = a.axes | b.axes
    a, b = (x if x.axes == axes else mul(x, ones(axes - x.axes)) for x in (a, b))
    return add(a, b)
