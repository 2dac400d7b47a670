"""Parameters and axes of b as its own, where a has others of the same names.

That a is a case of b is said of all values of a's parameters and of some of b's, whatever both are
called, and at a size of each axis. A claim may ask that a parameter λ of b, or an axis n that only
parameters and states of b have, is none of a's. It is then a claim about b with other names, and
nothing else in the kernel knows of it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from dsfc.expr.declarations import Tensor
from dsfc.expr.tree import Axis, Expr, LinearMap, Param, argument_names
from dsfc.source import Span
from dsfc.system.ir import System
from dsfc.trusted.claim import Claim
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.witness import stored_axes


def alpha_rename(claim: Claim) -> Claim:
    """Returns what a claim says as one where what it tells apart has a name of its own.

    Axes go by their new names in `sizes`.

    Raises:
        Rejected: it is neither a claim that a is a case of b nor one on values inside, or tells
            apart what b and a have as one.
    """
    if not claim.apart:
        return claim
    if not (claim.equal and (claim.case or claim.free)):
        raise Rejected("parameters are told apart, and no case of b is claimed")
    own = own_names(claim)
    for name in claim.apart:
        if name not in own:
            raise Rejected(f"`{name}` is told apart, and is no parameter or axis of b's own")
    renamed = _Renaming({name: own[name] for name in claim.apart}).of(claim.b)
    return dataclasses.replace(claim, b=renamed, apart=())


def own_names(claim: Claim) -> Mapping[str, str]:
    """Returns b's parameters and axes of names that a has too → names that they may have instead.

    What is identified with something of a keeps its name, and so does an axis of an input, of a
    buffer or of the output, where the two are put side by side.
    """
    b = claim.b
    theirs = _names(claim.a)
    taken = theirs | _names(b) | {same for _, same in claim.names}
    beside = {axis.name for t in (*b.inputs, *b.buffers) for axis in stored_axes(t)}
    beside |= {axis.name for o in b.outputs for axis in o.axes}
    kept = beside | {name for name, _ in claim.names}
    out: dict[str, str] = {}
    for name in (*(t.name for t in b.params), *(d.axis.name for d in b.axes)):
        if name in theirs and name not in kept:
            new = f"{name}_"
            while new in taken:
                new += "_"
            taken.add(new)
            out[name] = new
    return out


def _names(system: System) -> set[str]:
    tensors = (*system.inputs, *system.params, *system.buffers)
    named = (*tensors, *system.streams, *system.abstracts)
    names = {x.name for x in named} | {b.state for b in system.blocks}
    return names | {d.axis.name for d in system.axes}


class _Renaming:
    """Systems with other names of parameters and axes, by code that is the kernel's own."""

    def __init__(self, new: Mapping[str, str]) -> None:
        self.new = new
        self._known: dict[Expr, Expr] = {}

    def of(self, system: System) -> System:
        """Returns a system, renamed; what is claimed of it elsewhere is left out."""
        params = tuple(
            dataclasses.replace(t, name=self._name(t.name)) if isinstance(t, Tensor) else t
            for t in system.params
        )
        out: System = self._value(
            dataclasses.replace(system, params=params, claims=(), derivation=())
        )
        return out

    def _name(self, name: str) -> str:
        return self.new.get(name, name)

    def _value(self, value: Any) -> Any:  # noqa: ANN401 - any part of a system
        match value:
            case Expr():
                if value not in self._known:
                    self._known[value] = self._expression(value)
                return self._known[value]
            case Axis():
                copied = None if value.copy_of is None else self._name(value.copy_of)
                return dataclasses.replace(value, name=self._name(value.name), copy_of=copied)
            case tuple():
                return tuple(self._value(v) for v in value)
            case frozenset():
                return frozenset(self._value(v) for v in value)
        if not dataclasses.is_dataclass(value) or isinstance(value, Span):
            return value
        assert not isinstance(value, type)
        parts = {
            f.name: self._value(getattr(value, f.name)) for f in dataclasses.fields(value) if f.init
        }
        if isinstance(value, LinearMap):
            parts["name"] = self._name(value.name)
        return dataclasses.replace(value, **parts)

    def _expression(self, e: Expr) -> Expr:
        kind = type(e)
        parts = {name: self._value(getattr(e, name)) for name in argument_names(kind)}
        if isinstance(e, Param):
            parts["name"] = self._name(e.name)
        return kind(**parts)
