"""Whether a system says what all it uses is: axes, maps, names and primitives as declared.

The names of generators are made of the names of axes, maps and primitives, and a proof takes two
generators of one name for one function. Text reaches a system through the language, which lets
nothing be used that is not declared. A certificate may hold a system that no text gives: a `Size`
of an axis that calls itself a copy of another one, a map that calls itself real, a primitive with a
name that spells a sum. Each would be another function under a name that is taken. So would a
complex number that is declared positive, as |z| = z for positive z alone, and a real buffer of a
complex value, or one made of parameters.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import lru_cache

from dsfc.expr.build import walk
from dsfc.expr.declarations import Constraint, MapTensor, Tensor
from dsfc.expr.reserved_names import FIRST
from dsfc.expr.table import row
from dsfc.expr.tree import (
    Abstract,
    Add,
    Axis,
    Div,
    Expr,
    Field,
    Iota,
    LinearMap,
    Mul,
    Num,
    Ones,
    Param,
    Pow,
    Prim,
    Reduce,
    Ref,
    Rename,
    Series,
    Size,
    argument_names,
)
from dsfc.system.ir import Definition, Output, Post, Stream, System

_VALUES = (Num, Size, Ones, Iota, Add, Mul, Div, Pow, Reduce, Rename, Prim, Series)
"""Nodes of what a buffer may be set to."""
_OF_COMPLEX = (Constraint.NONE, Constraint.NONZERO)
"""What may be promised of complex numbers."""


@lru_cache(maxsize=64)
def closed(system: System) -> None:
    """Raises a ValueError that names what a system uses otherwise than it declares it."""
    axes = {d.axis for d in system.axes}
    positions = [d.axis.index for d in system.axes]
    if positions != sorted(set(positions)):
        # Arrays are stored in this order: in another one the entries would be other numbers.
        raise ValueError("the axes are not in the order of their positions")
    for t in (*system.inputs, *system.params, *system.buffers):
        if isinstance(t, Tensor) and t.field is not Field.REAL and t.constraint not in _OF_COMPLEX:
            raise ValueError(f"`{t.name}` is complex, and cannot be {t.constraint.value}")
    for t in system.buffers:
        _buffer(t)
    maps = {t.name: t.map for t in (*system.params, *system.buffers) if isinstance(t, MapTensor)}
    abstracts = {a.name: (a.source, a.target) for a in system.abstracts}
    declared = _declared(system)
    for part in _parts(system):
        match part:
            case Axis() if part not in axes:
                raise ValueError(f"the axis `{part.name}` is used and not declared so")
            case LinearMap() if _stored(part) != maps.get(part.name):
                raise ValueError(f"the map `{part.name}` is used and not declared so")
            case Abstract(name, source, target) if abstracts.get(name) != (source, target):
                raise ValueError(f"the map `{name}` is used and not declared so")
            case Ref(name=name) | Param(name=name) if (part.over, part.kind) not in declared.get(
                name, ()
            ):
                raise ValueError(f"`{name}` is used otherwise than declared")
            case Prim():
                _primitive(part)
            case Stream(name=name, value=Expr() as value) | Definition(name=name, value=value) if (
                part.field is Field.REAL and value.field is not Field.REAL
            ):
                raise ValueError(f"`{name}` is declared real and is not")
            case Post(name=name, axis=axis) if row(name).along_axis != (axis is not None):
                raise ValueError(f"`{name}` is used as what it is not")


def _declared(system: System) -> dict[str, set[tuple[frozenset[Axis], Field]]]:
    """Name → the axes and fields that it is declared with, in the derived form or as written."""
    out = {FIRST: {(frozenset[Axis](), Field.REAL)}}
    stored = tuple(t for t in (*system.params, *system.buffers) if isinstance(t, Tensor))
    for t in (*system.inputs, *stored):
        out.setdefault(t.name, set()).add((frozenset(t.axes), t.field))
    defining: tuple[Stream | Definition | Output, ...]
    defining = (*system.streams, *system.definition, *system.outputs)
    for d in defining:
        out.setdefault(d.name, set()).add((frozenset(d.axes), d.field))
    for b in system.blocks:
        out.setdefault(b.state, set()).add((frozenset(b.axes), b.field))
    return out


def _parts(value: object) -> Iterator[object]:
    """Every dataclass and expression inside a value, each expression once."""
    stack, seen = [value], set[Expr]()
    while stack:
        top = stack.pop()
        if isinstance(top, tuple | frozenset):
            stack.extend(top)
        elif isinstance(top, Expr):
            if top in seen:
                continue
            seen.add(top)
            yield top
            stack.extend(getattr(top, n) for n in argument_names(type(top)))
        elif dataclasses.is_dataclass(top):
            yield top
            stack.extend(getattr(top, f.name) for f in dataclasses.fields(top))


def _stored(m: LinearMap) -> LinearMap:
    """The map whose array an adjoint reads."""
    if not m.adjoint:
        return m
    return dataclasses.replace(m, source=m.target, target=m.source, adjoint=False)


def _buffer(t: Tensor | MapTensor) -> None:
    if t.init is None or t.init.drawn:
        return
    value = t.init.value
    if isinstance(t, Tensor):
        axes, kind = t.axes, t.field
    else:
        axes, kind = (*t.map.each, *t.map.target, *t.map.source), t.map.field
    if not value.axes <= frozenset(axes) or value.field > kind:
        raise ValueError(f"the value of `{t.name}` is another array than declared")
    if not all(isinstance(e, _VALUES) for e in walk(value)):
        raise ValueError(f"the value of `{t.name}` is not made of numbers")


def _primitive(e: Prim) -> None:
    known = row(e.name)
    real = all(a.field is Field.REAL for a in e.args)
    if known.along_axis != (e.axis is not None) or len(e.args) != known.arity:
        raise ValueError(f"`{e.name}` is used as what it is not")
    if not (real or known.fields.takes_complex) or e.kind is not known.fields.result(real):
        raise ValueError(f"`{e.name}` has not the field that it gives")
