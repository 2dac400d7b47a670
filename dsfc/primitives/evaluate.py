"""Evaluation of expressions in double precision, with named axes.

The meaning of every expression node that can stand in a System. Sums over time, lag powers and runs
belong to the mixer and are given their meaning there, through `Scope.node`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dsfc.primitives.expr import (
    Abstract,
    Add,
    Axis,
    Div,
    Draw,
    Expr,
    Field,
    Fir,
    Iota,
    Lag,
    LinearMap,
    Map,
    Mul,
    Now,
    Num,
    Ones,
    Param,
    Past,
    Pow,
    Prim,
    Reduce,
    Reduction,
    Ref,
    Rename,
    Run,
    Series,
    Size,
)
from dsfc.primitives.table import row

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


def evaluate(expr: Expr, scope: Scope, known: dict[Expr, NamedArray] | None = None) -> NamedArray:
    """Returns the value of an expression, with exactly its axes.

    Args:
        expr: the expression.
        scope: values of the leaves.
        known: values of sub-expressions already evaluated in this scope; extended in place. Pass
            one dictionary to evaluate several expressions at the same token.

    Raises:
        TypeError: the expression has a node that the scope cannot evaluate.
    """
    memo: dict[Expr, NamedArray] = {} if known is None else known

    def go(e: Expr) -> NamedArray:
        out = memo.get(e)
        if out is None:
            out = memo[e] = _value(e, go, scope)
        return out

    return go(expr).expand(canonical(expr.axes), scope.size)


Go = Callable[[Expr], NamedArray]


@singledispatch
def _value(e: Expr, go: Go, scope: Scope) -> NamedArray:
    raise TypeError(f"{type(e).__name__} has no value")


def scalar(value: complex) -> NamedArray:
    """Returns a value without axes."""
    return NamedArray((), np.asarray(value))


@_value.register
def _(e: Num, go: Go, scope: Scope) -> NamedArray:
    return scalar(float(e.value))


@_value.register
def _(e: Size, go: Go, scope: Scope) -> NamedArray:
    return scalar(float(scope.size(e.axis)))


@_value.register
def _(e: Ones, go: Go, scope: Scope) -> NamedArray:
    axes = canonical(e.over)
    return NamedArray(axes, np.ones([scope.size(a) for a in axes]))


@_value.register
def _(e: Iota, go: Go, scope: Scope) -> NamedArray:
    return NamedArray((e.axis,), np.arange(scope.size(e.axis), dtype=np.float64))


@_value.register
def _(e: Param, go: Go, scope: Scope) -> NamedArray:
    return scope.param(e.name)


@_value.register
def _(e: Ref, go: Go, scope: Scope) -> NamedArray:
    return scope.ref(e)


@_value.register(Past)
@_value.register(Lag)
@_value.register(Run)
@_value.register(Draw)
def _(e: Expr, go: Go, scope: Scope) -> NamedArray:
    return scope.node(e)


def _joined(function: Callable[..., Array], args: Iterable[NamedArray]) -> NamedArray:
    values = tuple(args)
    axes = canonical(frozenset().union(*(v.axes for v in values)))
    return NamedArray(axes, function(*(v.over(axes) for v in values)))


@_value.register
def _(e: Add, go: Go, scope: Scope) -> NamedArray:
    return _joined(lambda *a: _folded(np.add, a), (go(x) for x in e.args))


@_value.register
def _(e: Mul, go: Go, scope: Scope) -> NamedArray:
    return _joined(lambda *a: _folded(np.multiply, a), (go(x) for x in e.args))


def _folded(function: Callable[[Array, Array], Array], values: tuple[Array, ...]) -> Array:
    out = values[0]
    for v in values[1:]:
        out = function(out, v)
    return out


@_value.register
def _(e: Div, go: Go, scope: Scope) -> NamedArray:
    return _joined(np.divide, (go(e.num), go(e.den)))


@_value.register
def _(e: Pow, go: Go, scope: Scope) -> NamedArray:
    return _joined(np.power, (go(e.base), go(e.exponent)))


_REDUCERS: Mapping[Reduction, Callable[..., Array]] = {
    Reduction.SUM: np.sum,
    Reduction.MEAN: np.mean,
    Reduction.MAX: np.max,
}


@_value.register
def _(e: Reduce, go: Go, scope: Scope) -> NamedArray:
    product = _contracted(e, go) if e.how is Reduction.SUM else None
    if product is not None:
        return product
    x = go(e.arg)
    if e.axis not in x.axes:
        # Only `Ones` factors carried the axis and were absorbed by broadcasting.
        x = x.expand(canonical((*x.axes, e.axis)), scope.size)
    at = x.axes.index(e.axis)
    axes = x.axes[:at] + x.axes[at + 1 :]
    return NamedArray(axes, np.asarray(_REDUCERS[e.how](x.data, axis=at)))


def _contracted(e: Reduce, go: Go) -> NamedArray | None:
    """Σ over one axis of a product of two as an einsum; None when the shape is another."""
    if not isinstance(e.arg, Mul) or len(e.arg.args) != 2:
        return None
    left, right = (go(x) for x in e.arg.args)
    if e.axis not in left.axes or e.axis not in right.axes:
        return None
    axes = canonical(frozenset(left.axes) | frozenset(right.axes))
    at = {a: k for k, a in enumerate(axes)}
    out = tuple(a for a in axes if a != e.axis)
    data = np.einsum(
        left.data, [at[a] for a in left.axes], right.data, [at[a] for a in right.axes],
        [at[a] for a in out],
    )  # fmt: skip
    return NamedArray(out, np.asarray(data))


@_value.register
def _(e: Map, go: Go, scope: Scope) -> NamedArray:
    return apply_map(e.map, scope.matrix(e.map), go(e.arg), scope.size)


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
    made = [fresh[a] for a in map.target]
    subscripts = [number[a] for a in map.each] + (read + made if map.adjoint else made + read)
    kept = {a: k for a, k in number.items() if a not in map.source} | fresh
    axes = canonical(kept)
    data = np.einsum(
        matrix, subscripts, x.data, [number[a] for a in x.axes], [kept[a] for a in axes]
    )
    return NamedArray(axes, np.asarray(data))


@_value.register
def _(e: Fir, go: Go, scope: Scope) -> NamedArray:
    if not isinstance(e.arg, Ref) or not isinstance(e.arg.at, Now):
        raise TypeError("the argument of a Fir must be a name, so that its past values exist")
    weight = go(e.weight).expand(canonical({*e.weight.axes, e.axis}), scope.size)
    at = weight.axes.index(e.axis)
    axes = weight.axes[:at] + weight.axes[at + 1 :]
    out: NamedArray | None = None
    for r in range(scope.size(e.axis)):
        lag = e.arg.at.lag + (-r if e.reverse else r)
        value = go(Ref(e.arg.name, e.arg.over, e.arg.kind, e.arg.when, Now(lag)))
        tap = _joined(np.multiply, (NamedArray(axes, np.take(weight.data, r, at)), value))
        out = tap if out is None else _joined(np.add, (out, tap))
    return scalar(0.0) if out is None else out


@_value.register
def _(e: Rename, go: Go, scope: Scope) -> NamedArray:
    x = go(e.arg)
    if e.old not in x.axes:
        return x
    named = tuple(e.new if a == e.old else a for a in x.axes)
    order = sorted(range(len(named)), key=lambda k: named[k])
    return NamedArray(tuple(named[k] for k in order), np.transpose(x.data, order))


@_value.register
def _(e: Prim, go: Go, scope: Scope) -> NamedArray:
    r = row(e.name)
    if e.axis is None:
        return _joined(r.value, (go(a) for a in e.args))
    x = go(e.args[0])
    if e.axis not in x.axes:
        x = x.expand(canonical((*x.axes, e.axis)), scope.size)
    return NamedArray(x.axes, r.value(x.data, axis=x.axes.index(e.axis) - len(x.axes)))


@_value.register
def _(e: Series, go: Go, scope: Scope) -> NamedArray:
    x = go(e.arg)
    out = np.zeros_like(x.data)
    for r in range(e.order, -1, -1):
        out = out * x.data + 1 / math.factorial(r)
    return NamedArray(x.axes, out)


@_value.register
def _(e: Abstract, go: Go, scope: Scope) -> NamedArray:
    x = go(e.arg)
    return scope.abstract(e.name, x.expand(canonical(e.arg.axes), scope.size))


def dtype_of(kind: Field) -> type[np.float64] | type[np.complex128]:
    """Returns the NumPy type that holds values of a field."""
    return np.complex128 if kind is Field.COMPLEX else np.float64
