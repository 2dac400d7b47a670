"""The order in which streams and stages can be computed.

A stream needs the streams it reads and the stages whose states it reads; a stage needs the streams
of its coefficients. Streams keep the order of the mixer as far as that goes; what the output does
not need is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from dsfc.derive.model import Model
from dsfc.derive.update import Update
from dsfc.expr.build import walk
from dsfc.expr.graph import depth_first
from dsfc.expr.tree import Expr, Ref
from dsfc.system.ir import ReadOut, Stream
from dsfc.system.traverse import expressions, terms

_Node = str | tuple[str, ...]
"""A stream by its name, or a stage by the names of its states."""


@dataclass(frozen=True, slots=True)
class Order:
    """What the output needs, each behind what it needs itself.

    Attributes:
        streams: the streams.
        stages: names of the states of each stage.
    """

    streams: tuple[Stream, ...]
    stages: tuple[tuple[str, ...], ...]


def ordered(
    model: Model,
    tree: ReadOut,
    streams_by_name: Mapping[str, Stream],
    updates: Mapping[str, Update],
    stages: Iterable[tuple[str, ...]],
) -> Order:
    """Returns the streams and stages that a read-out needs, in order.

    Args:
        model: knows which stages must stand before which.
        tree: the read-out of the output.
        streams_by_name: all streams.
        updates: the updates of all states that are needed, over streams.
        stages: all stages.
    """
    graph = _Graph(model, streams_by_name, updates, {n: names for names in stages for n in names})
    needed = set(depth_first(graph.of_read_out(tree), graph.needs))
    mixer_order: list[_Node] = [name for name in model.definitions if name in needed]
    out = depth_first([*mixer_order, *graph.of_read_out(tree)], graph.needs)
    streams = tuple(streams_by_name[n] for n in out if isinstance(n, str))
    return Order(streams, tuple(n for n in out if not isinstance(n, str)))


@dataclass(frozen=True, slots=True)
class _Graph:
    model: Model
    made: Mapping[str, Stream]
    updates: Mapping[str, Update]
    stage_of: Mapping[str, tuple[str, ...]]

    def needs(self, node: _Node) -> list[_Node]:
        if isinstance(node, str):
            value = self.made[node].value
            return (
                self.of_expressions([value]) if isinstance(value, Expr) else self.of_read_out(value)
            )
        out: list[_Node] = []
        for name in node:
            out += [self.stage_of[s] for s in sorted(self.model.behind.get(name, ()))]
            out += self.of_expressions(_held(self.updates[name]))
        return out

    def of_expressions(self, held: Iterable[Expr]) -> list[_Node]:
        names = (x.name for e in held for x in walk(e) if isinstance(x, Ref))
        return [name for name in names if name in self.made]

    def of_read_out(self, tree: ReadOut) -> list[_Node]:
        return [
            *self.of_expressions(expressions(tree)),
            *(self.stage_of[t.source] for t in terms(tree)),
        ]


def _held(update: Update) -> Iterator[Expr]:
    for form in update.chain:
        for t in form.terms:
            yield t.left
            yield t.right
        if form.rest is not None:
            yield form.rest
    if update.flow is not None:
        yield update.flow.step
        yield update.flow.diagonal
        yield update.flow.drive
        for left, _, right in update.flow.low_rank:
            yield left
            yield right
