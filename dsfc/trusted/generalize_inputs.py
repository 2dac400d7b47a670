"""Token-wise values as inputs of their own.

A condition such as η_i Δ_i = κ speaks of values inside both mixers. Whether some parameters make
it hold for all inputs is another question; here the values that feed states and outputs (queries,
keys, gates, normalisers) are taken for inputs, so that what is proved holds however they are made.
A value that is positive by its definition stays so.

A running maximum is no rational function of anything, so it is taken for an input too, wherever
equality is claimed without conditions: outputs that are equal whatever it is, before the first
token too, are equal for what it is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from functools import lru_cache

from dsfc.expr.declarations import Constraint, Tensor
from dsfc.expr.interval import POSITIVE, Interval
from dsfc.expr.ranges import Ranges
from dsfc.expr.tree import Expr, Field, Now, Ref, children
from dsfc.system.ir import MaxPlus, Stream, System
from dsfc.system.known import bounds
from dsfc.trusted.claim import Claim

LABELS = ("A:", "B:")
"""Start the names of what is an input of one of the two only because it was made free."""


def system_of(claim: Claim, second: bool) -> System:
    """Returns the system that a claim speaks of: that of a or b, its values free if it says so."""
    system = claim.b if second else claim.a
    if claim.free:
        return generalize_inputs(system)
    return _with_inputs(system, maxima(claim, second)) if maxima(claim, second) else system


def maxima(claim: Claim, second: bool) -> frozenset[str]:
    """Returns the running maxima of a or b that the claim takes for inputs."""
    if claim.free or claim.case or claim.conditions:
        return frozenset()
    system = claim.b if second else claim.a
    return frozenset(s.name for s in system.streams if isinstance(s.value, MaxPlus))


def _with_inputs(system: System, names: frozenset[str]) -> System:
    """The system with some of its streams as inputs."""
    inputs = tuple(Tensor(s.name, s.axes, s.field) for s in system.streams if s.name in names)
    return dataclasses.replace(
        system,
        inputs=(*system.inputs, *inputs),
        streams=tuple(s for s in system.streams if s.name not in names),
    )


def common_names(claim: Claim, second: bool) -> dict[str, str]:
    """Returns names in one system → what both call it; those left out stand for themselves."""
    names = dict(claim.names) if second else {}
    free = maxima(claim, second)
    if claim.free:
        free = frozenset(s.name for s in _values(claim.b if second else claim.a))
    return names | {name: LABELS[second] + name for name in sorted(free)}


def ranges(claim: Claim) -> dict[str, Interval]:
    """Returns common name of a real value that is made free → where it lies by its definition.

    No inputs and parameters give it a value elsewhere, so a point has none there.
    """
    if not claim.free:
        return {}
    return {
        common_names(claim, second)[s.name]: range_of(system, s)
        for second, system in ((False, claim.a), (True, claim.b))
        for s in _values(system)
        if s.field is Field.REAL
    }


@lru_cache(maxsize=64)
def generalize_inputs(system: System) -> System:
    """Returns the system with its token-wise values as inputs."""
    values = _values(system)
    names = {s.name for s in values}
    readers = _readers(system, {s.name: s for s in system.streams})
    streams = tuple(s for s in system.streams
                    if s.constant or s.name in readers)  # fmt: skip
    inputs = tuple(Tensor(s.name, s.axes, s.field, _constraint(system, s)) for s in values)
    return dataclasses.replace(
        system,
        inputs=(*system.inputs, *inputs),
        streams=streams,
        definition=tuple(d for d in system.definition if d.name not in names),
    )


@lru_cache(maxsize=64)
def _values(system: System) -> tuple[Stream, ...]:
    """The token-wise values that states and outputs, or values made of states, read."""
    streams = {s.name: s for s in system.streams}
    readers = _readers(system, streams)
    used: set[str] = set()
    for e in expressions((system.stages, system.outputs)):
        used |= _reads(e)
    for name in readers:
        for e in expressions((streams[name].value,)):
            used |= _reads(e)
    return tuple(
        s for s in system.streams if s.name in used and not s.constant and s.name not in readers
    )


def _readers(system: System, streams: dict[str, Stream]) -> set[str]:
    """The values that read states."""
    out = {s.name for s in system.streams if not isinstance(s.value, Expr)}
    states = {b.state for b in system.blocks}
    while True:
        more = {
            name
            for name, s in streams.items()
            if name not in out and isinstance(s.value, Expr) and _reads(s.value) & (out | states)
        }
        if not more:
            return out
        out |= more


def expressions(value: object) -> Iterator[Expr]:
    """Yields every expression inside a value made of tuples and dataclasses."""
    if isinstance(value, Expr):
        yield value
    elif isinstance(value, Iterable) and not isinstance(value, str | dict):
        for v in value:
            yield from expressions(v)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from expressions(getattr(value, field.name))


def _reads(e: Expr) -> set[str]:
    out, stack = set(), [e]
    while stack:
        top = stack.pop()
        if isinstance(top, Ref):
            out.add(top.name)
        stack += children(top)
    return out


class _AtAnyToken(Ranges):
    """Ranges of token-wise values, those before the first token among them, which are 0."""

    def __init__(self, system: System) -> None:
        super().__init__(*bounds(system))
        self._streams = {s.name: s.value for s in system.streams if isinstance(s.value, Expr)}

    def written(self, e: Expr) -> Interval:
        """Returns the range of an expression, names of token-wise values looked up."""
        if not isinstance(e, Ref) or e.field is not Field.REAL:
            return super().written(e)
        interval = self.of(self._streams[e.name]) if e.name in self._streams else super().written(e)
        return interval if e.at in (None, Now(0)) else interval.hull(Interval(0.0, 0.0))


@lru_cache(maxsize=256)
def range_of(system: System, stream: Stream) -> Interval:
    """Returns where a real token-wise value lies, at whatever token."""
    assert isinstance(stream.value, Expr)
    return _AtAnyToken(system).of(stream.value)


def _constraint(system: System, stream: Stream) -> Constraint:
    positive = range_of(system, stream).within(POSITIVE)
    return Constraint.POSITIVE if positive and stream.field is Field.REAL else Constraint.NONE
