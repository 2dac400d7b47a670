"""Evaluation of expressions in double precision, with named axes.

The meaning of every expression node that can stand in a System. Sums over time, lag powers and runs
belong to the mixer and are given their meaning there, through `Scope.node`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import singledispatch
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dsfc.expr.over_time import Lag, Past, Run
from dsfc.expr.table import Primitive, row
from dsfc.expr.tree import (
    Abstract,
    Add,
    Axis,
    Div,
    Draw,
    Expr,
    Field,
    Fir,
    Iota,
    LinearMap,
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

Array = NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class NamedArray:
    """An array with named axes.

    Attributes:
        axes: names of the dimensions, in canonical order.
        data: float64 or complex128, one dimension per axis.
    """

    axes: tuple[Axis, ...]
    data: Array

    def over(self, axes: tuple[Axis, ...]) -> Array:
        """Returns a view that broadcasts over `axes` (canonical order, containing its own)."""
        if axes == self.axes:
            return self.data
        own = iter(self.data.shape)
        shape = [next(own) if a in self.axes else 1 for a in axes]
        return self.data.reshape(shape)

    def expand(self, axes: tuple[Axis, ...], size: Callable[[Axis], int]) -> NamedArray:
        """Returns the value broadcast to exactly `axes`, which contain its own."""
        if axes == self.axes:
            return self
        shape = tuple(size(a) for a in axes)
        return NamedArray(axes, np.broadcast_to(self.over(axes), shape))


def canonical(axes: Iterable[Axis]) -> tuple[Axis, ...]:
    """Returns axes in canonical order."""
    return tuple(sorted(axes))


class Scope(Protocol):
    """Where the leaves of an expression get their values."""

    def size(self, axis: Axis) -> int:
        """Returns the size of an axis."""

    def param(self, name: str) -> NamedArray:
        """Returns a parameter or buffer."""

    def matrix(self, map: LinearMap) -> Array:
        """Returns the stored array `[*each, *target, *source]` of the map as declared.

        For a map with `adjoint` set this is still the stored array of the map it is the adjoint of:
        `[*each, *source, *target]` in terms of the map given.
        """

    def ref(self, ref: Ref) -> NamedArray:
        """Returns a named value at its time index; zeros outside the sequence."""

    def abstract(self, name: str, value: NamedArray) -> NamedArray:
        """Applies an uninterpreted feature map."""

    def node(self, expr: Expr) -> NamedArray:
        """Evaluates a node that exists in a mixer only (`Past`, `Lag`, `Run`) or a `Draw`."""


class Algebra(Protocol):
    """What the entries of arrays are, and how primitives act on them."""

    def number(self, value: Fraction) -> Any:  # noqa: ANN401
        """Returns an exact number as an entry."""

    def apply(self, row: Primitive, args: tuple[Array, ...], axis: int | None) -> Array:
        """Applies a primitive; `axis` counts from the last."""


class Float64:
    """Double precision: float64 and complex128."""

    def number(self, value: Fraction) -> float:
        """Returns the nearest double."""
        return float(value)

    def apply(self, row: Primitive, args: tuple[Array, ...], axis: int | None) -> Array:
        """Applies the row's NumPy function."""
        return np.asarray(row.value(*args) if axis is None else row.value(*args, axis=axis))


FLOAT64 = Float64()


def evaluate(
    expr: Expr,
    scope: Scope,
    known: dict[Expr, NamedArray] | None = None,
    algebra: Algebra = FLOAT64,
) -> NamedArray:
    """Returns the value of an expression, with exactly its axes.

    Args:
        expr: the expression.
        scope: values of the leaves.
        known: values of sub-expressions already evaluated in this scope; extended in place. Pass
            one dictionary to evaluate several expressions at the same token.
        algebra: what the entries are; the scope's values must be of the same kind.

    Raises:
        TypeError: the expression has a node that the scope cannot evaluate.
    """
    at = _Evaluation(scope, {} if known is None else known, algebra)
    return at.value(expr).expand(canonical(expr.axes), scope.size)


@dataclass(frozen=True, slots=True, eq=False)
class _Evaluation:
    scope: Scope
    known: dict[Expr, NamedArray]
    algebra: Algebra

    def value(self, e: Expr) -> NamedArray:
        out = self.known.get(e)
        if out is None:
            out = self.known[e] = _value(e, self)
        return out

    def number(self, value: Fraction | int) -> NamedArray:
        return NamedArray((), np.asarray(self.algebra.number(Fraction(value))))


@singledispatch
def _value(e: Expr, at: _Evaluation) -> NamedArray:
    raise TypeError(f"{type(e).__name__} has no value")


@_value.register
def _(e: Num, at: _Evaluation) -> NamedArray:
    return at.number(e.value)


@_value.register
def _(e: Size, at: _Evaluation) -> NamedArray:
    return at.number(at.scope.size(e.axis))


@_value.register
def _(e: Ones, at: _Evaluation) -> NamedArray:
    return at.number(1).expand(canonical(e.over), at.scope.size)


@_value.register
def _(e: Iota, at: _Evaluation) -> NamedArray:
    count = range(at.scope.size(e.axis))
    return NamedArray((e.axis,), np.asarray([at.algebra.number(Fraction(k)) for k in count]))


@_value.register
def _(e: Param, at: _Evaluation) -> NamedArray:
    return at.scope.param(e.name)


@_value.register
def _(e: Ref, at: _Evaluation) -> NamedArray:
    return at.scope.ref(e)


@_value.register(Past)
@_value.register(Lag)
@_value.register(Run)
@_value.register(Draw)
def _(e: Expr, at: _Evaluation) -> NamedArray:
    return at.scope.node(e)


def _joined(function: Callable[..., Array], args: Iterable[NamedArray]) -> NamedArray:
    values = tuple(args)
    axes = canonical(frozenset().union(*(v.axes for v in values)))
    return NamedArray(axes, np.asarray(function(*(v.over(axes) for v in values))))


@_value.register
def _(e: Add, at: _Evaluation) -> NamedArray:
    return _joined(lambda *a: _folded(np.add, a), (at.value(x) for x in e.args))


@_value.register
def _(e: Mul, at: _Evaluation) -> NamedArray:
    return _joined(lambda *a: _folded(np.multiply, a), (at.value(x) for x in e.args))


def _folded(function: Callable[[Array, Array], Array], values: tuple[Array, ...]) -> Array:
    out = values[0]
    for v in values[1:]:
        out = function(out, v)
    return out


@_value.register
def _(e: Div, at: _Evaluation) -> NamedArray:
    return _joined(np.divide, (at.value(e.num), at.value(e.den)))


@_value.register
def _(e: Pow, at: _Evaluation) -> NamedArray:
    return _joined(np.power, (at.value(e.base), at.value(e.exponent)))


_REDUCERS: Mapping[Reduction, Callable[..., Array]] = {
    Reduction.SUM: np.sum,
    Reduction.MEAN: np.mean,
    Reduction.MAX: np.max,
}


@_value.register
def _(e: Reduce, at: _Evaluation) -> NamedArray:
    product = _contracted(e, at) if e.how is Reduction.SUM else None
    if product is not None:
        return product
    x = at.value(e.arg)
    if e.axis not in x.axes:
        # Only `Ones` factors carried the axis and were absorbed by broadcasting.
        x = x.expand(canonical((*x.axes, e.axis)), at.scope.size)
    place = x.axes.index(e.axis)
    axes = x.axes[:place] + x.axes[place + 1 :]
    return NamedArray(axes, np.asarray(_REDUCERS[e.how](x.data, axis=place)))


def _contracted(e: Reduce, at: _Evaluation) -> NamedArray | None:
    """Σ over one axis of a product of two as an einsum; None when the shape is another."""
    if not isinstance(e.arg, Mul) or len(e.arg.args) != 2:
        return None
    left, right = (at.value(x) for x in e.arg.args)
    if e.axis not in left.axes or e.axis not in right.axes:
        return None
    axes = canonical(frozenset(left.axes) | frozenset(right.axes))
    number = {a: k for k, a in enumerate(axes)}
    out = tuple(a for a in axes if a != e.axis)
    data = np.einsum(
        left.data, [number[a] for a in left.axes], right.data, [number[a] for a in right.axes],
        [number[a] for a in out],
    )  # fmt: skip
    return NamedArray(out, np.asarray(data))


@_value.register
def _(e: Map, at: _Evaluation) -> NamedArray:
    return apply_map(e.map, at.scope.matrix(e.map), at.value(e.arg), at.scope.size)


def apply_map(
    map: LinearMap, stored: Array, x: NamedArray, size: Callable[[Axis], int]
) -> NamedArray:
    """Returns the linear map applied to a value.

    Args:
        map: the map; with `adjoint` the conjugate transpose of the stored array is applied.
        stored: `[*each, *target, *source]` of the declared (not the adjoint) map.
        x: the argument; its axes are broadcast to contain the map's source.
        size: sizes of axes.
    """
    matrix = np.conj(stored) if map.adjoint else stored
    x = x.expand(canonical({*x.axes, *map.source}), size)
    # Source and target may share names with axes of x: number them apart.
    number = {a: k for k, a in enumerate(x.axes)}
    for a in map.each:
        number.setdefault(a, len(number))
    fresh = {a: len(number) + k for k, a in enumerate(map.target)}
    read = [number[a] for a in map.source]
    targets = [fresh[a] for a in map.target]
    subscripts = [number[a] for a in map.each] + (read + targets if map.adjoint else targets + read)
    kept = {a: k for a, k in number.items() if a not in map.source} | fresh
    axes = canonical(kept)
    data = np.einsum(
        matrix, subscripts, x.data, [number[a] for a in x.axes], [kept[a] for a in axes]
    )
    return NamedArray(axes, np.asarray(data))


@_value.register
def _(e: Fir, at: _Evaluation) -> NamedArray:
    if not isinstance(e.arg, Ref) or not isinstance(e.arg.at, Now):
        raise TypeError("the argument of a Fir must be a name, so that its past values exist")
    weight = at.value(e.weight).expand(canonical({*e.weight.axes, e.axis}), at.scope.size)
    place = weight.axes.index(e.axis)
    axes = weight.axes[:place] + weight.axes[place + 1 :]
    out: NamedArray | None = None
    for r in range(at.scope.size(e.axis)):
        lag = e.arg.at.lag + (-r if e.reverse else r)
        value = at.value(Ref(e.arg.name, e.arg.over, e.arg.kind, e.arg.when, Now(lag)))
        tap = _joined(np.multiply, (NamedArray(axes, np.take(weight.data, r, place)), value))
        out = tap if out is None else _joined(np.add, (out, tap))
    return at.number(0) if out is None else out


@_value.register
def _(e: Rename, at: _Evaluation) -> NamedArray:
    x = at.value(e.arg)
    if e.old not in x.axes:
        return x
    named = tuple(e.new if a == e.old else a for a in x.axes)
    order = sorted(range(len(named)), key=lambda k: named[k])
    return NamedArray(tuple(named[k] for k in order), np.transpose(x.data, order))


@_value.register
def _(e: Prim, at: _Evaluation) -> NamedArray:
    r = row(e.name)
    if e.axis is None:
        if not e.args:
            return NamedArray((), at.algebra.apply(r, (), None))
        return _joined(lambda *a: at.algebra.apply(r, a, None), (at.value(a) for a in e.args))
    x = at.value(e.args[0])
    if e.axis not in x.axes:
        x = x.expand(canonical((*x.axes, e.axis)), at.scope.size)
    along = x.axes.index(e.axis) - len(x.axes)
    return NamedArray(x.axes, at.algebra.apply(r, (x.data,), along))


@_value.register
def _(e: Series, at: _Evaluation) -> NamedArray:
    x = at.value(e.arg)
    out = x.data * 0
    for r in range(e.order, -1, -1):
        out = out * x.data + at.algebra.number(Fraction(1, math.factorial(r)))
    return NamedArray(x.axes, np.asarray(out))


@_value.register
def _(e: Abstract, at: _Evaluation) -> NamedArray:
    x = at.value(e.arg)
    return at.scope.abstract(e.name, x.expand(canonical(e.arg.axes), at.scope.size))


def dtype_of(kind: Field) -> type[np.float64] | type[np.complex128]:
    """Returns the NumPy type that holds values of a field."""
    return np.complex128 if kind is Field.COMPLEX else np.float64
