"""L5, read-outs: a value that depends on states as a tree over reads C h + D u.

A value is first tried as affine in all its states. Where that fails, the node at its top becomes a
node of the tree: a quotient a Ratio, a product a Product or a Gate, a map a MapOut, Re and Im a
Cast, a primitive a Post. Under a contraction, factors that depend on states become streams and the
rest stays a Read. What no node can hold is computed from streams.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from dsfc.derive.affine import Affine, Analysis, NotAffine, factors_of, live_axes
from dsfc.derive.model import SUM_MARK, Model
from dsfc.derive.separated import sum_over
from dsfc.derive.streams import Streams
from dsfc.expr.build import ONE, ZERO, add, div, is_one, mul, ones, prim, remake, walk
from dsfc.expr.over_time import Past
from dsfc.expr.tree import (
    Add,
    Axis,
    Div,
    Expr,
    Field,
    Map,
    Mul,
    Now,
    Prim,
    Reduce,
    Reduction,
    Ref,
    Size,
    Time,
    children,
)
from dsfc.system.ir import (
    Cache,
    Cast,
    ComplexPart,
    Direct,
    Gate,
    Guard,
    GuardKind,
    MapOut,
    MaxPlus,
    Post,
    Product,
    Ratio,
    Read,
    ReadOut,
    Sum,
    SumOver,
    Term,
)

_PARTS = {"re": ComplexPart.RE, "im": ComplexPart.IM}


class ReadOuts:
    """Makes the read-outs of one System and, with them, its streams."""

    def __init__(self, model: Model) -> None:
        """Takes the model after separation."""
        self.model = model
        self.streams = Streams(model, self.of)
        self._all = Analysis(model, (*model.states, SUM_MARK), shifts=False)
        self._counts: Counter[str] | None = None
        self._maps_on_top: dict[Expr, bool] = {}
        self._version = model.version
        for name, d in model.definitions.items():
            if not model.reach(d.value):
                self.streams.ensure(name)

    def of(self, e: Expr) -> ReadOut:
        """Returns the read-out of a value."""
        if not self.model.reach(e):
            return Direct(self.streams.token(e))
        if isinstance(e, Ref):
            return self._ref(e)
        if not self._map_on_top(e):
            try:
                return self._read(self._all.of(e), e.axes)
            except NotAffine:
                pass
        return self._node(e)

    def _depends(self, e: Expr) -> bool:
        return bool(self.model.reach(e))

    def _ref(self, e: Ref) -> ReadOut:
        value = self.model.value(e.name)
        if value is not None and self._inlined(e):
            return self.of(value)
        if value is None and e.at in (Now(0), Now(self.model.states[e.name].step)):
            return self._read(self._all.of(e), e.axes)
        return Direct(self.streams.token(e))

    # --- affine -----------------------------------------------------------------------------------

    def _read(self, form: Affine, axes: frozenset[Axis]) -> ReadOut:
        """A Read, with the token-wise factors that all its terms share in front of it."""
        token = self.streams.token
        named = [replace(t, left=token(t.left), right=token(t.right)) for t in form.terms]
        terms = [_with_constants(t, frozenset(self.model.states[t.source].axes)) for t in named]
        direct = None if form.rest is None else token(form.rest)
        if not terms:
            return Direct(direct if direct is not None else mul(ZERO, ones(axes)))
        if form.rest is not None and self.model.sources(form.rest):
            # Delayed reads of the same states: no part of what a scan over them can give.
            return Sum((self._read(Affine(form.terms), axes), Direct(token(form.rest))))
        gates = self._gates(terms, direct, axes)
        if not gates:
            return Read(tuple(terms), direct)
        bare = tuple(replace(t, left=_without(t.left, gates)) for t in terms)
        if direct is not None:
            direct = _without(direct, gates)
            direct = mul(direct, ones(axes - direct.axes))
        return Gate(mul(*gates), Read(bare, direct))

    def _gates(
        self, terms: list[Term], direct: Expr | None, axes: frozenset[Axis]
    ) -> tuple[Expr, ...]:
        """Token-wise factors common to all parts of a read, as long as no term loses an axis."""
        parts = [t.left for t in terms] + ([] if direct is None else [direct])
        out: tuple[Expr, ...] = ()
        for f in factors_of(parts[0]):
            # A factor of one part may stand twice in another.
            if f.time is Time.CONST or any(factors_of(p).count(f) <= out.count(f) for p in parts):
                continue
            kept = (self._term_axes(t, (*out, f)) for t in terms)
            if all(k == axes for k in kept):
                out = (*out, f)
        return out

    def _term_axes(self, t: Term, gates: tuple[Expr, ...]) -> frozenset[Axis]:
        live = live_axes(t, frozenset(self.model.states[t.source].axes))
        return live | _without(t.left, gates).axes | (t.right.axes - t.over)

    # --- nodes ------------------------------------------------------------------------------------

    def _node(self, e: Expr) -> ReadOut:
        match e:
            case Past():
                return Cache(self.streams.cached(e), self.model.why[e])
            case Add(args):
                return self._sum(e, args)
            case Mul(args):
                return self._product(args)
            case Div(numerator, denominator):
                return self._quotient(numerator, denominator)
            case Map(map=m, arg=arg):
                return MapOut(m, self.of(arg))
            case Prim(name, args, _, axis):
                if name in _PARTS:
                    return Cast(_PARTS[name], self.of(args[0]))
                return Post(name, tuple(self.of(a) for a in args), axis)
            case Reduce(how, axis, arg) if how is not Reduction.MAX:
                out = self._contraction(axis, arg)
                return Gate(div(ONE, Size(axis)), out) if how is Reduction.MEAN else out
        return self._computed(e)

    def _sum(self, e: Add, args: tuple[Expr, ...]) -> ReadOut:
        """Affine summands make one Read, token-wise ones its direct part, others stand apart."""
        affine: list[Expr] = []
        free: list[Expr] = []
        others: list[ReadOut] = []
        for a in args:
            full = a if a.axes == e.axes else mul(a, ones(e.axes - a.axes))
            if not self._depends(full):
                free.append(full)
            elif not self._map_on_top(full) and self._is_affine(full):
                affine.append(full)
            else:
                others.append(self.of(full))
        parts: list[ReadOut] = []
        if affine:
            parts.append(self.of(add(*affine, *free)))
        elif free:
            parts.append(Direct(self.streams.token(add(*free))))
        both = [*others, *parts]
        return both[0] if len(both) == 1 else Sum(tuple(both))

    def _is_affine(self, e: Expr) -> bool:
        try:
            self._all.of(e)
        except NotAffine:
            return False
        return True

    def _product(self, args: tuple[Expr, ...]) -> ReadOut:
        # Told apart first: what the read-out of one factor names, the next one reads as a stream.
        dependent = [a for a in args if self._depends(a)]
        free = [a for a in args if a not in dependent]
        inner = [self.of(a) for a in dependent]
        factor = self.streams.token(mul(*free))
        gates: list[Expr] = [] if is_one(factor) else [factor]
        out: ReadOut = inner[0] if len(inner) == 1 else Product(tuple(inner))
        if isinstance(out, Gate):
            gates, out = [*gates, out.factor], out.arg
        return Gate(mul(*gates), out) if gates else out

    def _quotient(self, numerator: Expr, denominator: Expr) -> ReadOut:
        token = self.streams.token
        if not self._depends(denominator):
            inner, factor = self.of(numerator), token(div(ONE, denominator))
            if isinstance(inner, Gate):
                return Gate(mul(inner.factor, factor), inner.arg)
            return Gate(factor, inner)
        if denominator.field is Field.COMPLEX:
            # a / z = a conj(z) / |z|²: denominators of a System are real.
            squares = (mul(part, part) for part in (prim(n, denominator) for n in _PARTS))
            return self._quotient(mul(numerator, prim("conj", denominator)), add(*squares))
        den, guard = self._guarded(denominator)
        missing = denominator.axes - numerator.axes
        num = self.of(mul(numerator, ones(missing)) if missing else numerator)
        below = self.of(den)
        # The gate in front of a ratio stands in front of it again; a factor that both sides have
        # cancels where it cannot be zero.
        above = num.factor if isinstance(num, Gate) else ONE
        if isinstance(num, Gate) and isinstance(below, Gate) and guard.kind is GuardKind.NONE:
            shared = _positive(num.factor, below.factor)
            above = _without(above, shared)
            factor = _without(below.factor, shared)
            below = below.arg if is_one(factor) else Gate(factor, below.arg)
        inner = num.arg if isinstance(num, Gate) else num
        lacks = self._axes(below) - self._axes(inner)
        ratio = Ratio(Gate(ones(lacks), inner) if lacks else inner, below, guard)
        return ratio if is_one(above) else Gate(above, ratio)

    def _axes(self, out: ReadOut) -> frozenset[Axis]:
        """The axes of a read-out's value."""
        match out:
            case Read(terms, direct):
                parts = [self._term_axes(t, ()) for t in terms]
                return frozenset().union(*parts, () if direct is None else direct.axes)
            case Direct(value):
                return value.axes
            case Cache(past):
                return past.axes
            case MaxPlus(log_decay, log_weight):
                return log_decay.axes | log_weight.axes
            case Gate(factor, arg):
                return factor.axes | self._axes(arg)
            case Cast(arg=arg):
                return self._axes(arg)
            case MapOut(map, arg):
                kept = self._axes(arg) - frozenset(map.source)
                return kept | frozenset((*map.target, *map.each))
            case Post(args=args, axis=axis):
                along = () if axis is None else (axis,)
                return frozenset(along).union(*(self._axes(a) for a in args))
            case SumOver(axis, arg):
                return self._axes(arg) - {axis}
            case Ratio(num, den):
                return self._axes(num) | self._axes(den)
            case Product(args) | Sum(args):
                return frozenset().union(*(self._axes(a) for a in args))

    def _guarded(self, e: Expr) -> tuple[Expr, Guard]:
        """The guard that a denominator's top node is, and what it guards."""
        while isinstance(e, Ref) and e.at == Now(0) and e.name in self.model.definitions:
            e = self.model.definitions[e.name].value
        if isinstance(e, Prim) and e.name == "max":
            for a, c in (e.args, e.args[::-1]):
                match a:
                    case Prim("abs", (of,)) if of.field is Field.REAL and not self._depends(c):
                        return of, Guard(GuardKind.MAX_ABS, self.streams.token(c))
        if isinstance(e, Add):
            constant = [a for a in e.args if a.time is Time.CONST]
            rest = [a for a in e.args if a.time is not Time.CONST]
            if constant and rest:
                return add(*rest), Guard(GuardKind.ADD, self.streams.token(add(*constant)))
        return e, Guard()

    def _contraction(self, axis: Axis, arg: Expr) -> ReadOut:
        """Σ over an axis of a product: all but one dependent factor become streams."""
        while self._inlined(arg):
            # `_inlined` says that it is a name.
            arg = self.model.definitions[arg.name].value  # type: ignore[attr-defined]
        if axis not in arg.axes:
            return Gate(Size(axis), self.of(arg))
        if isinstance(arg, Add):
            full = (a if a.axes == arg.axes else mul(a, ones(arg.axes - a.axes)) for a in arg.args)
            return self.of(add(*(sum_over(axis, a) for a in full)))
        dependent = [a for a in factors_of(arg) if self._depends(a)]
        affine = [a for a in dependent if axis in a.axes and self._is_affine(a)]
        for kept in sorted(affine, key=lambda a: -len(a.axes)) if len(dependent) > 1 else ():
            rest = list(factors_of(arg))
            rest.remove(kept)  # once: the same factor may stand there again
            if self._before(rest, kept):
                named = (self._named(a) for a in rest)
                return self.of(Reduce(Reduction.SUM, axis, mul(*named, kept)))
        return SumOver(axis, self.of(arg))

    def _before(self, factors: list[Expr], kept: Expr) -> bool:
        """Whether factors come from stages that can stand before those a value reads.

        Writes down that they must, when they can: a scan can then use them as coefficients.
        """
        model = self.model
        needed = frozenset().union(*(model.sources(f) for f in factors)) - {SUM_MARK}
        read = model.reach(kept) - {SUM_MARK}
        if model.upstream(needed) & read:
            return False
        for state in read:
            model.behind.setdefault(state, set()).update(needed)
        return True

    def _inlined(self, e: Expr) -> bool:
        """Whether a value is a definition that is read in place rather than as a stream."""
        if not isinstance(e, Ref) or e.name not in self.model.definitions or e.at != Now(0):
            return False
        return self._depends(e) and e.name not in self.streams.made and self._uses(e.name) < 2

    def _uses(self, name: str) -> int:
        if self._counts is None:
            self._counts = Counter(
                c.name
                for d in self.model.definitions.values()
                for group in ((d.value,), *(children(e) for e in walk(d.value)))
                for c in group
                if isinstance(c, Ref)
            )
        return self._counts[name]

    def _map_on_top(self, e: Expr) -> bool:
        """Whether a linear map is applied to a state-dependent value outside all contractions."""
        if self._version != self.model.version:
            self._maps_on_top.clear()
            self._version = self.model.version
        if e not in self._maps_on_top:
            self._maps_on_top[e] = self._has_map_on_top(e)
        return self._maps_on_top[e]

    def _has_map_on_top(self, e: Expr) -> bool:
        match e:
            case Map(arg=arg):
                return self._depends(arg)
            case Add(args) | Mul(args):
                return any(self._map_on_top(a) for a in args)
            case Div(numerator, _):
                return self._map_on_top(numerator)
            case Ref(name=name) if name in self.model.definitions and e.at == Now(0):
                return self._map_on_top(self.model.definitions[name].value)
        return False

    def _named(self, e: Expr) -> Expr:
        return self.streams.named(e) if self._depends(e) else e

    def _computed(self, e: Expr) -> ReadOut:
        """A node that no read-out node can be: its arguments become streams."""
        return Direct(self.streams.token(remake(e, tuple(self._named(c) for c in children(e)))))


def _with_constants(t: Term, axes: frozenset[Axis]) -> Term:
    """Constants of a contraction stand with its right side: they belong to C.

    Not those of an axis that the left side re-introduces, and beside one only those that the
    source, of axes `axes`, has too.
    """
    if not t.over:
        return t
    anew = bool(t.left.axes & t.over)
    moved = [
        f
        for f in factors_of(t.left)
        if f.time is Time.CONST and _per_head(f) and not f.axes & t.over
        and (not anew or f.axes <= live_axes(t, axes))
    ]  # fmt: skip
    if not moved:
        return t
    kept = [f for f in factors_of(t.left) if f not in moved]
    return replace(t, left=mul(*kept), right=mul(*moved, t.right))


def _per_head(e: Expr) -> bool:
    return all(a.heads for a in e.axes)


def _positive(a: Expr, b: Expr) -> tuple[Expr, ...]:
    """Factors of both that are exponentials of real values."""
    return tuple(
        f
        for f in dict.fromkeys(factors_of(a))
        if isinstance(f, Prim) and f.name == "exp" and f.kind is Field.REAL and f in factors_of(b)
    )


def _without(e: Expr, factors: tuple[Expr, ...]) -> Expr:
    """A product with each of some factors taken out once."""
    rest = list(factors_of(e))
    for f in factors:
        rest.remove(f)
    return mul(*rest)
