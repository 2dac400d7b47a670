"""Gives Systems other names and other axes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from dsfc.expr.build import remake
from dsfc.expr.declarations import (
    AbstractMap,
    Tensor,
)
from dsfc.expr.tree import Abstract, Axis, Expr, LinearMap, Param, Ref, argument_names, children
from dsfc.system.ir import Block, Definition, Output, Stream, System, Term

T = TypeVar("T")

_NAMES: Mapping[type, tuple[str, ...]] = {
    Tensor: ("name",),
    AbstractMap: ("name",),
    LinearMap: ("name",),
    Stream: ("name",),
    Output: ("name",),
    Definition: ("name",),
    Block: ("state",),
    Term: ("source",),
}
"""The attributes of each class that hold names of inputs, parameters, streams or states."""


class Renamer:
    """Replaces names and axes throughout a value."""

    def __init__(
        self, names: Mapping[str, str] | None = None, axes: Mapping[Axis, Axis] | None = None
    ) -> None:
        """Takes the names and axes to replace; others are kept."""
        self._names = names or {}
        self._axes = axes or {}
        self._done: dict[Expr, Expr] = {}

    def of(self, value: T) -> T:
        """Returns the value with names and axes replaced, canonical orders restored."""
        made: T = self._value(value)
        return made

    def system(self, system: System, name: str | None = None) -> System:
        """Returns a System with names and axes replaced."""
        made = self.of(system)
        return replace(made, name=system.name if name is None else name)

    def _value(self, value: Any) -> Any:
        if isinstance(value, Expr):
            return self.expr(value)
        if isinstance(value, Axis):
            return self._axes.get(value, value)
        if isinstance(value, tuple):
            made = tuple(self._value(v) for v in value)
            axes = bool(made) and all(isinstance(v, Axis) for v in made)
            return tuple(sorted(made)) if axes and list(value) == sorted(value) else made
        if isinstance(value, frozenset):
            return frozenset(self._value(v) for v in value)
        if is_dataclass(value) and not isinstance(value, type):
            return self._record(value)
        return value

    def _record(self, value: Any) -> Any:
        named = _NAMES.get(type(value), ())
        new: dict[str, Any] = {}
        for f in fields(value):
            if not f.init or f.name == "span":
                continue
            old = getattr(value, f.name)
            new[f.name] = self._names.get(old, old) if f.name in named else self._value(old)
        return replace(value, **new)

    def expr(self, expr: Expr) -> Expr:
        """Returns an expression with names and axes replaced."""
        found = self._done.get(expr)
        if found is None:
            kids = remake(expr, tuple(self.expr(c) for c in children(expr)))
            found = self._done[expr] = self._own(kids)
        return found

    def _own(self, e: Expr) -> Expr:
        values = [getattr(e, n) for n in argument_names(type(e))]
        new = [v if isinstance(v, Expr) or _holds(v) else self._value(v) for v in values]
        if isinstance(e, Ref | Param | Abstract):
            new[0] = self._names.get(e.name, e.name)
        made: Expr = type(e)(*new)
        return made


def _holds(value: object) -> bool:
    return isinstance(value, tuple) and any(isinstance(v, Expr) for v in value)
