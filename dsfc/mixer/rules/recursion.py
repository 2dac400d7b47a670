"""W2 and W3 on the text: definitions that depend on themselves, through however many others.

Only a declared state may read its own past, so a circle of definitions is an error whatever its
indices; if one of its readings lies in the past, declaring a state is the repair.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dsfc.diagnostics.catalogue import Recursion
from dsfc.expr.graph import components, shortest_path
from dsfc.mixer.rules.names import spelled
from dsfc.source import Span
from dsfc.syntax import ast


@dataclass(frozen=True, slots=True)
class Reading:
    """One place where a definition reads another name.

    Attributes:
        text: how it is written, e.g. `x[i-1]`.
        past: whether it has a time index.
    """

    name: str
    text: str
    past: bool


def readings(node: ast.Condition) -> Iterator[Reading]:
    """Yields every name an expression mentions; time variables and axes among them."""
    for part in ast.walk(node):
        match part:
            case ast.Name():
                yield Reading(part.id, spelled(ast.Ident(part.id, part.span)), False)
            case ast.Index():
                yield Reading(part.name.text, _short(part), True)
            case ast.Call() | ast.Apply():
                yield Reading(part.name.text, spelled(part.name), False)
            case _:
                pass


def _short(node: ast.Index) -> str:
    text = "".join(node.span.text.split())
    written = node.name.span.text
    return spelled(node.name) + (text.removeprefix(written) if written else "[…]")


Readings = Mapping[str, tuple[Reading, ...]]


def circles(graph: Readings) -> Iterator[frozenset[str]]:
    """Yields each set of definitions that depend on one another.

    Args:
        graph: what each definition reads, other definitions only (states left out, functions
            expanded).
    """
    edges = {name: [r.name for r in readings] for name, readings in graph.items()}
    for part in components(edges):
        if len(part) > 1 or part[0] in edges[part[0]]:
            yield frozenset(part)


def recurring(graph: Readings, names: frozenset[str]) -> tuple[str, ...]:
    """Returns the definitions of a circle whose past it reads: those that should be states."""
    inside = [n for n in graph if n in names]
    past = {r.name for n in inside for r in graph[n] if r.past}
    return tuple(n for n in inside if n in past)


def report(
    graph: Readings,
    names: frozenset[str],
    places: Mapping[str, ast.Ident],
    shapes: Mapping[str, Sequence[str]],
) -> Iterator[Recursion]:
    """Yields what is wrong with a circle: each definition whose past is read, or else the circle.

    Args:
        graph: as for `circles`.
        names: the definitions of the circle.
        places: where each is defined.
        shapes: the axes that each seems to have, of those of which the text says it.
    """
    states = recurring(graph, names)
    inside = {n: [r for r in graph[n] if r.name in names] for n in graph if n in names}
    edges = {n: [r.name for r in readings] for n, readings in inside.items()}
    for name in states or tuple(inside)[:1]:
        closing = [
            (shortest_path(edges, name, reader), reading.text)
            for reader, readings in inside.items()
            for reading in readings
            if reading.name == name and (reading.past or not states)
        ]
        path, text = min(closing, key=lambda way: len(way[0]))
        shown = " → ".join((*(spelled(places[n]) for n in path), text))
        if states:
            axes = " × ".join(shapes[name]) if shapes.get(name) else "…"
            what, repair = "its own past", f"declare `state {spelled(places[name])} : {axes}`"
        else:
            what, repair = "its own value", "a definition cannot depend on itself"
        place = places[name]
        yield Recursion(place.span, name=spelled(place), what=what, path=shown, repair=repair)


def constant_cycle(path: Sequence[str], span: Span) -> Recursion:
    """Returns the report about constants that are defined by one another."""
    return _circle(path, span, "a constant cannot depend on itself")


def function_cycle(path: Sequence[str], span: Span) -> Recursion:
    """Returns the report about functions that call one another."""
    return _circle(path, span, "functions are expanded, so they cannot call themselves")


def _circle(path: Sequence[str], span: Span, repair: str) -> Recursion:
    shown = " → ".join(path)
    return Recursion(span, name=path[0], what="its own value", path=shown, repair=repair)
