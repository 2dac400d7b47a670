"""JSON for immutable values built from expressions: declarations, systems, plans.

A document holds every axis and every distinct expression node once, nodes after their arguments:

    {"axes": [...], "nodes": [[kind, argument, ...], ...], "value": ...}

In values an axis is `{"axis": k}`, an expression `{"node": k}`, a dataclass `{"type": name, ...}`,
an enum the name of its member and a fraction a text such as "3/4". Spans are not written. Reading
goes by the annotations of the dataclasses and refuses everything they do not allow, so a document
from elsewhere cannot make anything but well-typed values.
"""

from __future__ import annotations

import re
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from fractions import Fraction
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from dsfc.expr import over_time, tree
from dsfc.expr.tree import Axis, Expr, argument_names, children
from dsfc.source import Span

Json = Any

_FRACTION = re.compile(r"-?[0-9]{1,1000}(/[0-9]{1,1000})?")

_NODES: Mapping[str, type[Expr]] = {
    c.__name__: c
    for module in (tree, over_time)
    for c in vars(module).values()
    if isinstance(c, type) and issubclass(c, Expr) and c is not Expr
}


def encode(value: object) -> dict[str, Json]:
    """Returns the document of a value; equal values give equal documents."""
    return _Encoder().document(value)


def decode(document: Json, hint: object) -> Any:  # noqa: ANN401
    """Returns the value of a document.

    Args:
        document: what `encode` gave, as parsed by `json`.
        hint: the type expected: a class, or a union, tuple or frozenset of types.

    Raises:
        ValueError: the document does not describe a value of that type.
    """
    try:
        decoder = _Decoder(document)
        return decoder.value(document["value"], hint)
    except (KeyError, TypeError, IndexError, AttributeError, ZeroDivisionError) as e:
        raise ValueError(f"not a document of {hint}: {e}") from e


class _Encoder:
    def __init__(self) -> None:
        self._axes: dict[Axis, int] = {}
        self._nodes: dict[Expr, int] = {}
        self._rows: list[Json] = []

    def document(self, value: object) -> dict[str, Json]:
        body = self.value(value)
        axes = [[a.index, a.name, a.heads, a.copy_of] for a in self._axes]
        return {"axes": axes, "nodes": self._rows, "value": body}

    def value(self, value: object) -> Json:
        if isinstance(value, Expr):
            return {"node": self._node(value)}
        if isinstance(value, Axis):
            return {"axis": self._axes.setdefault(value, len(self._axes))}
        if isinstance(value, Enum):
            return value.name
        if isinstance(value, Fraction):
            return str(value)
        if isinstance(value, tuple):
            return [self.value(v) for v in value]
        if isinstance(value, frozenset):
            return [self.value(v) for v in sorted(value)]
        if is_dataclass(value) and not isinstance(value, type):
            named = {n: self.value(getattr(value, n)) for n in _written(type(value))}
            return {"type": type(value).__name__} | named
        if value is None or isinstance(value, bool | int | str):
            return value
        raise TypeError(f"{type(value).__name__} has no JSON form")

    def _node(self, e: Expr) -> int:
        # By hand, not by recursion through `value`: expressions may be deep.
        stack = [e]
        while stack:
            top = stack[-1]
            if top in self._nodes:
                stack.pop()
                continue
            waiting = [c for c in children(top) if c not in self._nodes]
            if waiting:
                stack.extend(reversed(waiting))
                continue
            arguments = [self.value(getattr(top, n)) for n in argument_names(type(top))]
            self._nodes[top] = len(self._rows)
            self._rows.append([type(top).__name__, *arguments])
            stack.pop()
        return self._nodes[e]


@cache
def _written(cls: type) -> tuple[str, ...]:
    hints = get_type_hints(cls)
    return tuple(f.name for f in fields(cls) if f.init and hints[f.name] != Span | None)


@cache
def _hints(cls: type) -> dict[str, Any]:
    return get_type_hints(cls)


class _Decoder:
    def __init__(self, document: Json) -> None:
        hints = _hints(Axis)
        self._axes = [
            Axis(*(self.value(v, h) for v, h in zip(row, hints.values(), strict=True)))
            for row in document["axes"]
        ]
        self._made: list[Expr] = []
        for kind, *arguments in document["nodes"]:
            cls = _NODES[kind]
            names = argument_names(cls)
            hints = _hints(cls)
            values = [self.value(v, hints[n]) for n, v in zip(names, arguments, strict=True)]
            self._made.append(cls(*values))

    def value(self, data: Json, hint: Any) -> Any:  # noqa: ANN401
        origin = get_origin(hint)
        if origin in (Union, types.UnionType):
            return self._one_of(data, get_args(hint))
        if origin is tuple:
            return self._tuple(data, get_args(hint))
        if origin is frozenset:
            return frozenset(self.value(v, get_args(hint)[0]) for v in _list(data))
        if isinstance(hint, type):
            return self._plain(data, hint)
        raise ValueError(f"nothing is read as {hint}")

    def _one_of(self, data: Json, hints: tuple[Any, ...]) -> Any:  # noqa: ANN401
        for hint in hints:
            try:
                return self.value(data, hint)
            except _Mismatch:
                continue
        raise _Mismatch(f"{data!r:.80} is none of {hints}")

    def _tuple(self, data: Json, hints: tuple[Any, ...]) -> tuple[Any, ...]:
        items = _list(data)
        if len(hints) == 2 and hints[1] is Ellipsis:
            return tuple(self.value(v, hints[0]) for v in items)
        return tuple(self.value(v, h) for v, h in zip(items, hints, strict=True))

    def _plain(self, data: Json, hint: type) -> Any:  # noqa: ANN401
        if issubclass(hint, Expr):
            return self._indexed(data, "node", self._made, hint)
        if hint is Axis:
            return self._indexed(data, "axis", self._axes, hint)
        if issubclass(hint, Enum):
            if not isinstance(data, str) or data not in hint.__members__:
                raise _Mismatch(f"{data!r:.80} is not a {hint.__name__}")
            return hint[data]
        if hint is Fraction:
            written = _of(data, str)
            # `Fraction` also takes exponents, and a short one can ask for gigabytes.
            if not _FRACTION.fullmatch(written):
                raise ValueError(f"{written!r:.80} is not a fraction")
            return Fraction(written)
        if is_dataclass(hint):
            return self._dataclass(data, hint)
        return _of(data, hint)

    def _indexed(self, data: Json, key: str, table: list[Any], hint: type) -> Any:  # noqa: ANN401
        if not isinstance(data, dict) or list(data) != [key]:
            raise _Mismatch(f"{data!r:.80} is not a {key}")
        at = _of(data[key], int)
        if not 0 <= at < len(table) or not isinstance(table[at], hint):
            raise _Mismatch(f"{key} {at} is not a {hint.__name__}")
        return table[at]

    def _dataclass(self, data: Json, hint: type) -> Any:  # noqa: ANN401
        if not isinstance(data, dict) or data.get("type") != hint.__name__:
            raise _Mismatch(f"{data!r:.80} is not a {hint.__name__}")
        hints = _hints(hint)
        named = {n: self.value(data[n], hints[n]) for n in _written(hint)}
        if len(named) != len(data) - 1:
            raise ValueError(f"unknown fields in {hint.__name__}")
        return hint(**named)


class _Mismatch(ValueError):
    """The data is of another type than the one tried."""


def _list(data: Json) -> list[Json]:
    return list(_of(data, list))


def _of(data: Json, hint: type) -> Any:  # noqa: ANN401
    # bool is a subclass of int: an integer is wanted only where the annotation says int.
    if type(data) is not hint:
        raise _Mismatch(f"{data!r:.80} is not a {hint.__name__}")
    return data
