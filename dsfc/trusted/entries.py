"""What an expression is at one index: sums, products and maps written out entry by entry.

The same walk serves symbols (the claim) and numbers (a witness); what an entry is, and what leaves
and primitives are, is the domain's to say.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from itertools import product
from math import factorial
from typing import Any, Generic, Protocol, TypeVar

from dsfc.expr.tree import (
    Add,
    Axis,
    Div,
    Expr,
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

Index = Mapping[Axis, int]
"""Axis → position."""


class Obstacle(Exception):
    """Something that this version has no rule for; its text names it, as a clause."""


class Arithmetic(Protocol):
    """What entries can do."""

    def __add__(self, other: Any, /) -> Any: ...  # noqa: ANN401 - of its own kind
    def __mul__(self, other: Any, /) -> Any: ...  # noqa: ANN401 - of its own kind
    def __truediv__(self, other: Any, /) -> Any: ...  # noqa: ANN401 - of its own kind


EntryT = TypeVar("EntryT", bound=Arithmetic)


class Entries(ABC, Generic[EntryT]):
    """The meaning of expressions in a domain, at one moment.

    Attributes:
        sizes: size of every axis by name.
    """

    def __init__(self, sizes: Mapping[str, int]) -> None:
        """Starts without known values."""
        self.sizes = sizes
        self._known: dict[tuple[Expr, tuple[int | None, ...], object], EntryT] = {}
        self._axes: dict[Expr, tuple[Axis, ...]] = {}

    @abstractmethod
    def number(self, value: Fraction) -> EntryT:
        """Returns an exact number."""

    @abstractmethod
    def size(self, axis: Axis) -> EntryT:
        """Returns the size of an axis as an entry."""

    @abstractmethod
    def parameter(self, name: str, axes: tuple[Axis, ...], at: tuple[int, ...]) -> EntryT:
        """Returns an entry of a stored array."""

    @abstractmethod
    def ref(self, ref: Ref, at: Index) -> EntryT:
        """Returns an entry of a named value at its time index."""

    @abstractmethod
    def primitive(self, e: Prim, args: tuple[EntryT, ...]) -> EntryT:
        """Returns an elementwise primitive of its arguments."""

    @abstractmethod
    def along(self, e: Prim, vector: tuple[EntryT, ...], at: int) -> EntryT:
        """Returns one entry of a primitive along an axis."""

    @abstractmethod
    def power(self, base: EntryT, exponent: EntryT) -> EntryT:
        """Returns a power."""

    @abstractmethod
    def conjugate(self, value: EntryT) -> EntryT:
        """Returns the complex conjugate."""

    @abstractmethod
    def largest(self, values: list[EntryT]) -> EntryT:
        """Returns the maximum of real entries."""

    def node(self, e: Expr, at: Index) -> EntryT:
        """Returns an entry of a node that only some domains give a meaning."""
        raise Obstacle(f"`{type(e).__name__}` stands in a definition")

    def memo_key(self) -> object:
        """Returns what, besides the index, an entry depends on."""
        return None

    def value(self, e: Expr, at: Index) -> EntryT:
        """Returns the entry of an expression at an index that has at least its axes."""
        axes = self._axes.get(e)
        if axes is None:
            axes = self._axes[e] = tuple(e.axes)
        key = (e, tuple(map(at.get, axes)), self.memo_key())
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._value(e, at)
        return known

    def places(self, axes: tuple[Axis, ...]) -> Iterator[dict[Axis, int]]:
        """Yields every index of some axes, the last axis running fastest."""
        for at in product(*(range(self.sizes[a.name]) for a in axes)):
            yield dict(zip(axes, at, strict=True))

    def total(self, parts: list[EntryT]) -> EntryT:
        """Returns the sum."""
        out = parts[0] if parts else self.number(Fraction(0))
        for part in parts[1:]:
            out = out + part
        return out

    def _value(self, e: Expr, at: Index) -> EntryT:
        match e:
            case Num(value):
                return self.number(value)
            case Ones():
                return self.number(Fraction(1))
            case Size(axis):
                return self.size(axis)
            case Iota(axis):
                return self.number(Fraction(at[axis]))
            case Param(name=name):
                axes = tuple(sorted(e.axes))
                return self.parameter(name, axes, tuple(at[a] for a in axes))
            case Ref():
                return self.ref(e, at)
            case Add(args):
                return self.total([self.value(a, at) for a in args])
            case Mul(args):
                parts = [self.value(a, at) for a in args]
                out = parts[0] if parts else self.number(Fraction(1))
                for part in parts[1:]:
                    out = out * part
                return out
            case Div(numerator, denominator):
                quotient: EntryT = self.value(numerator, at) / self.value(denominator, at)
                return quotient
            case Pow(base, exponent):
                return self.power(self.value(base, at), self.value(exponent, at))
            case Reduce():
                return self._reduced(e, at)
            case Map(map, arg):
                return self.mapped(map, arg, at)
            case Fir():
                return self._filtered(e, at)
            case Rename(old, new, arg):
                rest = {a: k for a, k in at.items() if a != new}
                return self.value(arg, {**rest, old: at[new]} if old in arg.axes else rest)
            case Prim(axis=None):
                return self.primitive(e, tuple(self.value(a, at) for a in e.args))
            case Prim(args=(arg,), axis=Axis() as axis):
                vector = (self.value(arg, {**at, axis: k}) for k in range(self.sizes[axis.name]))
                return self.along(e, tuple(vector), at[axis])
            case Series(order, arg):
                x, power = self.value(arg, at), self.number(Fraction(1))
                out = power
                for r in range(1, order + 1):
                    power = power * x
                    out = out + power * self.number(Fraction(1, factorial(r)))
                return out
        return self.node(e, at)

    def _reduced(self, e: Reduce, at: Index) -> EntryT:
        size = self.sizes[e.axis.name]
        if e.axis not in e.arg.axes:
            value = self.value(e.arg, at)
            return value * self.size(e.axis) if e.how is Reduction.SUM else value
        parts = [self.value(e.arg, {**at, e.axis: k}) for k in range(size)]
        if e.how is Reduction.MAX:
            return self.largest(parts)
        total = self.total(parts)
        return total / self.size(e.axis) if e.how is Reduction.MEAN else total

    def mapped(self, map: LinearMap, arg: Expr, at: Index) -> EntryT:
        """Returns one entry of a linear map applied to a value."""
        return self.applied(map, lambda there: self.value(arg, there), at)

    def applied(self, map: LinearMap, value: Callable[[Index], EntryT], at: Index) -> EntryT:
        """Returns Σ over the source of matrix entry times value.

        Args:
            map: the map.
            value: an index with the source's axes → entry.
            at: an index with the map's `each` and target axes.
        """
        rest = {a: k for a, k in at.items() if a not in map.target}
        parts = []
        for source in self.places(map.source):
            parts.append(self.stored(map, at, source) * value({**rest, **source}))
        return self.total(parts)

    def stored(self, map: LinearMap, target: Index, source: Index) -> EntryT:
        """Returns the entry of the matrix between two indices."""
        each = tuple(target[a] for a in map.each)
        there, here = tuple(target[a] for a in map.target), tuple(source[a] for a in map.source)
        if map.adjoint:
            axes = (*map.each, *map.source, *map.target)
            return self.conjugate(self.parameter(map.name, axes, (*each, *here, *there)))
        axes = (*map.each, *map.target, *map.source)
        return self.parameter(map.name, axes, (*each, *there, *here))

    def _filtered(self, e: Fir, at: Index) -> EntryT:
        if not isinstance(e.arg, Ref) or not isinstance(e.arg.at, Now):
            raise Obstacle("a filter is applied to something other than a name")
        parts = []
        for r in range(self.sizes[e.axis.name]):
            lag = Now(e.arg.at.lag + (-r if e.reverse else r))
            tap = Ref(e.arg.name, e.arg.over, e.arg.kind, e.arg.when, lag)
            parts.append(self.value(e.weight, {**at, e.axis: r}) * self.value(tap, at))
        return self.total(parts)
