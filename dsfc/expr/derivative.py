"""Reverse-mode derivatives of expressions, from the primitive table.

`pull` takes cotangents of some expressions to contributions of their leaves, all as expressions.
Complex values follow PyTorch: the gradient of a real loss L is ∂L/∂re + i ∂L/∂im. Axes that a value
lacks and its cotangent has are summed out, so that a contribution has exactly the leaf's axes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import singledispatch

from dsfc.expr.adjoints import conj, real
from dsfc.expr.build import (
    MINUS_ONE,
    ONE,
    ZERO,
    add,
    div,
    is_zero,
    mul,
    ones,
    power,
    prim,
    sub,
    total,
    walk,
)
from dsfc.expr.table import row
from dsfc.expr.tree import (
    Abstract,
    Add,
    Axis,
    Div,
    Expr,
    Field,
    Fir,
    Iota,
    LinearMap,
    Map,
    Mul,
    Now,
    Param,
    Pow,
    Prim,
    Reduce,
    Reduction,
    Ref,
    Rename,
    Series,
    Size,
    Time,
    children,
)


@dataclass(frozen=True, slots=True)
class MapGradient:
    """A contribution to a stored matrix: the outer product of a cotangent and an argument.

    The gradient of the array `[*each, *target, *source]` of the declared map is
    Σ over time of `cotangent ⊗ conj(argument)` over the map's axes, summed over all other axes
    that both have; entry (t, s) pairs target t of the cotangent with source s of the argument.

    Attributes:
        map: the declared map, never an adjoint.
        cotangent: has the map's `target` axes.
        argument: has its `source` axes. Either may lack some of `each`: it is the same for all.
    """

    map: LinearMap
    cotangent: Expr
    argument: Expr


@dataclass(frozen=True, slots=True)
class FilterGradient:
    """The cotangent of a causal filter, to be named before it can be filtered backwards.

    `filter_argument` and `filter_weight` give the contributions once the cotangent has a name.
    """

    filter: Fir
    cotangent: Expr


@dataclass(frozen=True, slots=True)
class Gradients:
    """Contributions of some expressions to their leaves, per token.

    Attributes:
        refs: for each distinct `Ref` (name and time index) its cotangent, with the Ref's axes. The
            cotangent is in terms of the present token: that of `u[i-1]` belongs to u one step back.
        params: for each tensor parameter its cotangent; over a sequence these are summed.
        maps: contributions to matrices.
        filters: cotangents of filters; nothing below a filter is in `refs`, `params` and `maps`.
    """

    refs: Mapping[Ref, Expr]
    params: Mapping[Param, Expr]
    maps: tuple[MapGradient, ...]
    filters: tuple[FilterGradient, ...]


def pull(cotangents: Iterable[tuple[Expr, Expr]]) -> Gradients:
    """Returns the contributions of pairs (expression, cotangent) to all their leaves.

    The cotangent of an expression has the expression's axes, or fewer: then it is broadcast.

    Raises:
        TypeError: an expression has a node without a derivative (those of a mixer only).
    """
    pending: dict[Expr, list[Expr]] = {}
    roots = []
    for e, g in cotangents:
        roots.append(e)
        pending.setdefault(e, []).append(_fit(g, e))
    maps: list[MapGradient] = []
    filters: list[FilterGradient] = []
    leaves: dict[Expr, Expr] = {}
    for e in _topological(roots):
        waiting = [g for g in pending.pop(e, ()) if not _vanishes(g)]
        if not waiting:
            continue
        cotangent = add(*waiting)
        if isinstance(e, Ref | Param):
            leaves[e] = cotangent
        elif isinstance(e, Fir):
            filters.append(FilterGradient(e, cotangent))
        else:
            if isinstance(e, Map):
                maps.append(_map_gradient(e, cotangent))
            for arg, g in zip(children(e), _rule(e, cotangent), strict=True):
                pending.setdefault(arg, []).append(_fit(g, arg))
    return Gradients(
        {e: g for e, g in leaves.items() if isinstance(e, Ref)},
        {e: g for e, g in leaves.items() if isinstance(e, Param)},
        tuple(maps),
        tuple(filters),
    )


def adjoint(map: LinearMap) -> LinearMap:
    """Returns the conjugate transpose of a map; twice is the map itself."""
    return LinearMap(map.name, map.each, map.target, map.source, map.field, not map.adjoint)


def filter_argument(filter: Fir, cotangent: Ref) -> Expr:
    """Returns the cotangent of the name that a filter reads, at that name's own token.

    With y_i = Σ_r w_r x_{i-k-r} it is Σ_r conj(w_r) ȳ_{i+k+r}.

    Args:
        filter: the filter.
        cotangent: ȳ as a name, at the present token.

    Raises:
        TypeError: the weight varies in time, or the filter does not read a name.
    """
    arg, lag = _filtered(filter)
    later = Ref(cotangent.name, cotangent.over, cotangent.kind, cotangent.when, Now(-lag))
    return _fit(Fir(filter.axis, conj(filter.weight), later, not filter.reverse), arg)


def filter_weight(filter: Fir, cotangent: Expr, copy: Axis) -> Expr:
    """Returns the cotangent of a filter's weight, per token: ȳ_i conj(x_{i-k-r}) over the taps r.

    Args:
        filter: the filter.
        cotangent: ȳ, at the present token.
        copy: a fresh axis of the same size as the filter's, summed inside.
    """
    arg, _ = _filtered(filter)
    apart = prim("sign", sub(mul(Iota(filter.axis), ones((copy,))), Iota(copy)))
    equal = sub(ONE, mul(apart, apart))
    taps = Fir(copy, equal, arg, filter.reverse)
    return _fit(mul(cotangent, conj(taps)), filter.weight)


def _filtered(filter: Fir) -> tuple[Ref, int]:
    arg = filter.arg
    if not isinstance(arg, Ref) or not isinstance(arg.at, Now):
        raise TypeError("a filter must read a name to be differentiated")
    if filter.weight.time is not Time.CONST:
        raise TypeError("the weight of a filter must not vary in time to be differentiated")
    return arg, arg.at.lag


def _topological(roots: Iterable[Expr]) -> list[Expr]:
    """All nodes, each before its arguments; the order depends on the expressions only."""
    done: set[Expr] = set()
    out: list[Expr] = []
    for root in roots:
        stack: list[tuple[Expr, bool]] = [(root, False)]
        while stack:
            e, left = stack.pop()
            if left:
                out.append(e)
            elif e not in done:
                done.add(e)
                stack.append((e, True))
                stack.extend((c, False) for c in children(e) if c not in done)
    return out[::-1]


def _vanishes(e: Expr) -> bool:
    return is_zero(e) or (isinstance(e, Mul) and is_zero(e.args[0]))


def _fit(cotangent: Expr, value: Expr) -> Expr:
    """Sums axes that the value lacks, broadcasts those the cotangent lacks, and fits the field."""
    if _vanishes(cotangent):
        return ZERO
    out = total(cotangent.axes - value.axes, cotangent)
    missing = value.axes - out.axes
    if missing:
        out = mul(out, ones(missing))
    return real(out) if value.field is Field.REAL else out


def varies(e: Expr) -> bool:
    """Returns whether an expression has a leaf that a gradient can reach."""
    return any(isinstance(n, Ref | Param | Map) for n in walk(e))


@singledispatch
def _rule(e: Expr, g: Expr) -> tuple[Expr, ...]:
    """Returns one cotangent per direct sub-expression, not yet fitted to its axes."""
    if not children(e):
        return ()
    raise TypeError(f"{type(e).__name__} has no derivative")


@_rule.register
def _(e: Add, g: Expr) -> tuple[Expr, ...]:
    return tuple(g for _ in e.args)


@_rule.register
def _(e: Mul, g: Expr) -> tuple[Expr, ...]:
    others = (mul(*e.args[:k], *e.args[k + 1 :]) for k in range(len(e.args)))
    return tuple(mul(g, conj(o)) for o in others)


@_rule.register
def _(e: Div, g: Expr) -> tuple[Expr, ...]:
    over = div(g, conj(e.den))
    return over, mul(MINUS_ONE, over, conj(e))


@_rule.register
def _(e: Pow, g: Expr) -> tuple[Expr, ...]:
    lower = power(e.base, sub(e.exponent, ONE))
    base = mul(g, conj(mul(e.exponent, lower))) if varies(e.base) else ZERO
    if not varies(e.exponent):
        return base, ZERO
    return base, mul(g, conj(mul(e, prim("log", e.base))))


@_rule.register
def _(e: Reduce, g: Expr) -> tuple[Expr, ...]:
    if e.how is Reduction.SUM:
        return (g,)
    if e.how is Reduction.MEAN:
        return (div(g, Size(e.axis)),)
    # 1 at the entries that attain the maximum, shared among them.
    attained = sub(ONE, prim("sign", sub(e, e.arg)))
    return (div(mul(g, attained), total((e.axis,), attained)),)


@_rule.register
def _(e: Map, g: Expr) -> tuple[Expr, ...]:
    return (Map(adjoint(e.map), g),)


def _map_gradient(e: Map, g: Expr) -> MapGradient:
    if e.map.adjoint:
        # y = Wᴴ x gives x ⊗ conj(ȳ): the roles of cotangent and argument are exchanged.
        return MapGradient(adjoint(e.map), e.arg, g)
    return MapGradient(e.map, g, e.arg)


@_rule.register
def _(e: Rename, g: Expr) -> tuple[Expr, ...]:
    return (Rename(e.new, e.old, g),)


@_rule.register
def _(e: Prim, g: Expr) -> tuple[Expr, ...]:
    return row(e.name).vjp(e.args, e, g, e.axis)


@_rule.register
def _(e: Series, g: Expr) -> tuple[Expr, ...]:
    if e.order == 0:
        return (ZERO,)
    lower = ONE if e.order == 1 else Series(e.order - 1, e.arg)
    return (mul(g, conj(lower)),)


@_rule.register
def _(e: Abstract, g: Expr) -> tuple[Expr, ...]:
    raise TypeError(f"the uninterpreted map `{e.name}` has no derivative")
