"""The names of a System as SymPy symbols at chosen sizes, token by token."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsfc.expr import sympy_bridge as bridge
from dsfc.expr.declarations import MapTensor
from dsfc.expr.evaluate import NamedArray, canonical
from dsfc.expr.reserved_names import FIRST
from dsfc.expr.sympy_bridge import Symbolic
from dsfc.expr.tree import Axis, Expr, LinearMap, Now, Ref
from dsfc.system.ir import System

BASIS = Axis(10**9, "basis")
"""A linear formula is evaluated once for all unit vectors; they stand along this axis."""


@dataclass(frozen=True, eq=False)
class Setting:
    """What all matrices of one System share.

    Attributes:
        system: the System.
        sizes: size of each axis.
        length: number of tokens; None when the sequence does not end.
        symbols: the table all symbols come from.
    """

    system: System
    sizes: Mapping[Axis, int]
    length: int | None
    symbols: bridge.Symbols = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Makes the table of symbols, with the assumptions that the declarations promise."""
        s = self.system
        tensors = [t for t in (*s.inputs, *s.params, *s.buffers) if not isinstance(t, MapTensor)]
        promises = {t.name: t.constraint for t in tensors}
        object.__setattr__(self, "symbols", bridge.Symbols(promises))

    def count(self, axes: tuple[Axis, ...]) -> int:
        """Returns the number of entries of a tensor with these axes."""
        return int(np.prod([self.sizes[a] for a in axes], dtype=int))

    def is_inside(self, token: int) -> bool:
        """Returns whether there is such a token."""
        return token >= 0 and (self.length is None or token < self.length)


@dataclass(frozen=True, eq=False)
class SymbolScope:
    """Values of names at one token: symbols, but for the names given.

    Attributes:
        setting: the System and its sizes.
        token: the token i.
        given: values of some names by (name, token they are read at).
        basis: number of unit vectors.
    """

    setting: Setting
    token: int
    given: Mapping[tuple[str, int], NamedArray] = field(default_factory=dict)
    basis: int = 0

    def size(self, axis: Axis) -> int:
        """Returns the size of an axis."""
        return self.basis if axis == BASIS else self.setting.sizes[axis]

    def ref(self, ref: Ref) -> NamedArray:
        """Returns a named value; 0 outside the sequence."""
        axes = canonical(ref.over)
        if ref.at is None:
            return NamedArray(axes, self._symbols(ref.name, axes, ref, ()))
        if not isinstance(ref.at, Now):
            raise TypeError(f"`{ref.name}` is read at a summed token")
        token = self.token - ref.at.lag
        if (ref.name, token) in self.given:
            return self.given[ref.name, token]
        if BASIS in ref.over or not self.setting.is_inside(token):
            return self._constant(axes, 0)
        if ref.name == FIRST:
            return self._constant(axes, int(token == 0))
        return NamedArray(axes, self._symbols(ref.name, axes, ref, (token,)))

    def _constant(self, axes: tuple[Axis, ...], value: int) -> NamedArray:
        data = np.full(
            [self.size(a) for a in axes], bridge.EXACT.number(Fraction(value)), dtype=object
        )
        return NamedArray(axes, data)

    def _symbols(
        self, name: str, axes: tuple[Axis, ...], ref: Ref, prefix: tuple[int, ...]
    ) -> NDArray[Any]:
        shape = [self.size(a) for a in axes]
        return bridge.symbol_array(self.setting.symbols, name, shape, ref.kind, prefix)

    def param(self, name: str) -> NamedArray:
        """Returns a parameter or buffer."""
        s = self.setting.system
        tensor = next(t for t in (*s.params, *s.buffers) if t.name == name)
        if isinstance(tensor, MapTensor):
            raise TypeError(f"`{name}` is a map, not a tensor")
        shape = [self.size(a) for a in tensor.axes]
        data = bridge.symbol_array(self.setting.symbols, name, shape, tensor.field)
        return NamedArray(tensor.axes, data)

    def matrix(self, map: LinearMap) -> NDArray[Any]:
        """Returns the stored array of a map."""
        ends = (map.source, map.target) if map.adjoint else (map.target, map.source)
        shape = [self.size(a) for a in (*map.each, *ends[0], *ends[1])]
        return bridge.symbol_array(self.setting.symbols, map.name, shape, map.field)

    def abstract(self, name: str, value: NamedArray) -> NamedArray:
        """Applies an uninterpreted map: an unknown function of all source entries."""
        function = next(a for a in self.setting.system.abstracts if a.name == name)
        kept = tuple(a for a in value.axes if a not in function.source)
        order = [value.axes.index(a) for a in (*kept, *function.source)]
        moved = np.transpose(value.data, order)
        shape = [self.size(a) for a in function.target]
        out = np.empty((*moved.shape[: len(kept)], *shape), dtype=object)
        for at in np.ndindex(*out.shape):
            arguments = moved[at[: len(kept)]].flat
            out[at] = bridge.unknown_function(name, at[len(kept) :], tuple(arguments))
        axes = (*kept, *function.target)
        order = sorted(range(len(axes)), key=lambda k: axes[k])
        return NamedArray(tuple(axes[k] for k in order), np.transpose(out, order))

    def node(self, expr: Expr) -> NamedArray:
        """Refuses: sums over time have no place in a System."""
        raise TypeError(f"{type(expr).__name__} has no value at one token")


def column(scope: SymbolScope, expr: Expr, order: tuple[Axis, ...]) -> list[Symbolic]:
    """Returns the entries of an expression, broadcast to `order`, the last axis fastest."""
    value = bridge.entries(expr, scope)
    full = value.expand(canonical(order), scope.size)
    places = [full.axes.index(a) for a in order]
    return list(np.transpose(full.data, places).flat)
