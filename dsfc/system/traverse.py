"""The one walker of Systems: what their nodes hold, found by looking at every field.

A pass that visits all of something asks here. Fields are read by reflection, so that a node's new
field is walked by every pass from the day it is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any, get_args

from dsfc.expr.build import walk
from dsfc.expr.declarations import MapTensor, Provenance, Tensor
from dsfc.expr.tree import Axis, Expr, LinearMap, Ref
from dsfc.source import Span
from dsfc.system.ir import (
    Block,
    Coupling,
    Decay,
    Gauge,
    KeptFlow,
    Output,
    ReadOut,
    Stage,
    Stream,
    System,
    Term,
)

READ_OUTS: tuple[type, ...] = get_args(ReadOut)
"""The kinds of node of a read-out tree."""

NOTES: tuple[type, ...] = (Coupling, Decay, Gauge, KeptFlow)
"""Records that say again what stands in a chain, and are no part of its value."""

_CLOSED = (Axis, LinearMap, Provenance, Span)
"""Records that hold neither expressions nor read-outs."""


@cache
def _fields(kind: type[Any]) -> tuple[str, ...]:
    return tuple(f.name for f in fields(kind) if f.init)


def _names(value: object) -> tuple[str, ...]:
    # A class is hashable, whatever its instances are.
    return _fields(type(value))  # type: ignore[arg-type]


def _opens(value: object, unopened: tuple[type, ...]) -> bool:
    if isinstance(value, type) or isinstance(value, (*_CLOSED, *unopened)):
        return False
    return is_dataclass(value)


def held(value: object, unopened: tuple[type, ...] = NOTES) -> Iterator[Any]:
    """Yields the expressions and read-outs that stand in the fields of a value, in order.

    Tuples and records between are opened; read-outs are yielded, not opened.

    Args:
        value: a node, a record of a System, or a tuple of them.
        unopened: kinds of record that are passed over.
    """
    inside = value if isinstance(value, tuple) else (getattr(value, n) for n in _names(value))
    for v in inside:
        if isinstance(v, (Expr, *READ_OUTS)):
            yield v
        elif isinstance(v, tuple) or _opens(v, unopened):
            yield from held(v, unopened)


# --- read-outs ------------------------------------------------------------------------------------


def trees(system: System) -> Iterator[ReadOut]:
    """Yields every read-out tree of a System: of streams, then of outputs."""
    for s in system.streams:
        if not isinstance(s.value, Expr):
            yield s.value
    for o in system.outputs:
        yield o.value


def arguments(tree: ReadOut) -> tuple[ReadOut, ...]:
    """Returns the direct sub-trees of a read-out."""
    return tuple(v for v in held(tree) if not isinstance(v, Expr))


def parts(tree: ReadOut) -> Iterator[ReadOut]:
    """Yields a read-out and all read-outs inside it, from the top."""
    stack = [tree]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(arguments(node)))


def terms(tree: ReadOut) -> Iterator[Term]:
    """Yields the terms of all reads in a read-out."""
    for node in parts(tree):
        yield from getattr(node, "terms", ())


def own_expressions(node: ReadOut) -> tuple[Expr, ...]:
    """Returns the expressions that one node holds itself, those of its terms left out."""
    return tuple(v for v in held(node, (*NOTES, Term)) if isinstance(v, Expr))


def expressions(tree: ReadOut) -> Iterator[Expr]:
    """Yields all expressions in a read-out, the sides of its terms included."""
    for node in parts(tree):
        yield from (v for v in held(node) if isinstance(v, Expr))


# --- whole Systems --------------------------------------------------------------------------------


def stage_expressions(stage: Stage) -> Iterator[Expr]:
    """Yields all token-wise expressions of a stage: of its chains, not of what is noted of them."""
    yield from held(stage)


def value_expressions(value: Expr | ReadOut) -> Iterator[Expr]:
    """Yields all expressions of the value of a stream or of an output."""
    if isinstance(value, Expr):
        yield value
    else:
        yield from expressions(value)


def system_expressions(system: System) -> Iterator[Expr]:
    """Yields every token-wise expression of a System: of streams, outputs and chains."""
    for s in system.streams:
        yield from value_expressions(s.value)
    for o in system.outputs:
        yield from value_expressions(o.value)
    for stage in system.stages:
        yield from stage_expressions(stage)


def arrays(system: System) -> Iterator[tuple[tuple[Axis, ...], Span | None]]:
    """Yields the axes, as they are stored, and the place of every array that a System names."""
    for t in (*system.inputs, *system.params, *system.buffers):
        yield stored_axes(t), t.span
    yield from ((s.axes, s.span) for s in system.streams)
    yield from ((b.axes, b.span) for b in system.blocks)
    yield from ((o.axes, o.span) for o in system.outputs)


def stored_axes(t: Tensor | MapTensor) -> tuple[Axis, ...]:
    """Returns the axes of a tensor as it is stored."""
    return (*t.map.each, *t.map.target, *t.map.source) if isinstance(t, MapTensor) else t.axes


def names_in(exprs: Iterable[Expr]) -> set[str]:
    """Returns the names that expressions read."""
    return {e.name for x in exprs for e in walk(x) if isinstance(e, Ref)}


def map_blocks(system: System, rule: Callable[[Block], Block]) -> System:
    """Returns the System with a rule applied to every block."""
    stages = tuple(replace(s, blocks=tuple(rule(b) for b in s.blocks)) for s in system.stages)
    return replace(system, stages=stages)


def map_trees(system: System, rule: Callable[[ReadOut], ReadOut]) -> System:
    """Returns the System with a rule applied to every node of every read-out, leaves first."""

    def go(tree: ReadOut) -> ReadOut:
        rebuilt: ReadOut = replace(tree, **{n: below(getattr(tree, n)) for n in _names(tree)})
        return rule(rebuilt)

    def below(value: Any) -> Any:  # noqa: ANN401
        if isinstance(value, READ_OUTS):
            return go(value)  # type: ignore[arg-type]  # one of the union, says the line above
        return tuple(map(below, value)) if isinstance(value, tuple) else value

    def stream(s: Stream) -> Stream:
        return s if isinstance(s.value, Expr) else replace(s, value=go(s.value))

    def output(o: Output) -> Output:
        return replace(o, value=go(o.value))

    return replace(
        system,
        streams=tuple(stream(s) for s in system.streams),
        outputs=tuple(output(o) for o in system.outputs),
    )


def map_expressions(system: System, rule: Callable[[Expr], Expr]) -> System:
    """Returns the System with a rule applied to every expression of its streams, stages, outputs.

    What is noted of a chain (`NOTES`) is left as it stands.
    """

    def below(value: Any) -> Any:  # noqa: ANN401
        if isinstance(value, Expr):
            return rule(value)
        if isinstance(value, tuple):
            return tuple(map(below, value))
        if _opens(value, NOTES):
            return replace(value, **{n: below(getattr(value, n)) for n in _names(value)})
        return value

    return replace(
        system,
        streams=below(system.streams),
        stages=below(system.stages),
        outputs=below(system.outputs),
    )
