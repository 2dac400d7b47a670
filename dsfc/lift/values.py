"""Tensors of a trace: a node and the layout that says which dimension is what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from dsfc.lift.axes import Axes, Axis, Entry, Layout, Mismatch, Time, axes_of, resolved, size
from dsfc.lift.build import op, swapped
from dsfc.lift.failure import CannotLift
from dsfc.lift.ir import At, Delay, First, Node, Num, Ones, Rename
from dsfc.lift.ir import axes as axes_below

if TYPE_CHECKING:
    import torch


@dataclass
class Value:
    """A tensor of the trace.

    Attributes:
        node: its formula.
        layout: what its dimensions are.
        const: the tensor itself, where it depends on no parameter and no input.
        maker: for a constant, the operation that made it.
        tokens: for a tensor that is filled token by token, what it was filled with.
        view: for a token of such a tensor, the tensor and the number of the token.
    """

    node: Node
    layout: Layout
    const: torch.Tensor | None = None
    maker: torch.fx.Node | None = None
    tokens: dict[int, Value] = field(default_factory=dict)
    view: tuple[torch.fx.Node, int] | None = None

    @property
    def times(self) -> tuple[Time, ...]:
        """The axes of tokens, in the order of the dimensions."""
        return tuple(f for entry in self.layout for f in entry if isinstance(f, Time))

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The axes of the module."""
        return axes_of(f for entry in self.layout for f in entry)


def time_of(entry: Entry) -> Time | None:
    """Returns the axis of tokens in a dimension."""
    return next((f for f in entry if isinstance(f, Time)), None)


def with_time(entry: Entry, time: Time) -> Entry:
    """Returns a dimension with another axis of tokens in the place of its own."""
    return tuple(time if isinstance(f, Time) else f for f in entry)


class Broadcast:
    """Lays tensors over each other, as elementwise operations do."""

    def __init__(self, axes: Axes, length: int) -> None:
        """Keeps what axes are one.

        Args:
            axes: of the module.
            length: number of tokens of the trace.
        """
        self.axes = axes
        self.length = length

    def together(self, values: Sequence[Value]) -> tuple[list[Node], Layout]:
        """Returns the nodes of tensors over common axes and tokens, and the common layout.

        Raises:
            CannotLift: dimensions do not fit, or more than two axes of tokens meet.
        """
        rank = max(len(v.layout) for v in values)
        nodes = [v.node for v in values]
        wide = [((),) * (rank - len(v.layout)) + v.layout for v in values]
        for at in range(rank):
            first: int | None = None
            for k, layout in enumerate(wide):
                if not resolved(layout[at]):
                    continue
                if first is None:
                    first = k
                    continue
                nodes[k] = self._paired(nodes[k], wide[first][at], layout[at])
        common: list[Entry] = []
        for at in range(rank):
            entry = next((e for e in (resolved(w[at]) for w in wide) if e), ())
            seen = {f for e in common for f in e if isinstance(f, Axis)}
            if seen & set(entry):
                entry = self._renamed(entry, seen, at, wide, nodes)
            common.append(entry)
        nodes, common = self._over_tokens(values, wide, nodes, common)
        layout = tuple(common)
        self.axes.note(layout)
        return nodes, layout

    def _paired(self, node: Node, ours: Entry, theirs: Entry) -> Node:
        """The second value's node after its dimension was paired with the first's."""
        try:
            for one, other in self.axes.pair(_timeless(ours), _timeless(theirs)):
                node = Rename(node, other, one)
        except Mismatch:
            sizes = f"{size(ours)} and {size(theirs)}"
            raise CannotLift(
                f"dimensions of {sizes} entries are not made of the same axes"
            ) from None
        return node

    def _renamed(
        self, entry: Entry, seen: set[Axis], at: int, wide: list[Layout], nodes: list[Node]
    ) -> Entry:
        """A dimension whose axes another dimension of the result has too gets axes of its own."""
        out = list[Any]()  # factors of an entry nest
        for factor in entry:
            if not isinstance(factor, Axis) or factor not in seen:
                out.append(factor)
                continue
            fresh = Axis(factor.size)
            for k, layout in enumerate(wide):
                if factor in resolved(layout[at]):
                    if factor in axes_below(nodes[k], {}):
                        nodes[k] = Rename(nodes[k], factor, fresh)
            out.append(fresh)
        return tuple(out)

    def _over_tokens(
        self, values: Sequence[Value], wide: list[Layout], nodes: list[Node], common: list[Entry]
    ) -> tuple[list[Node], list[Entry]]:
        """Numbers the axes of tokens of the result, and reads each value at its own."""
        places = [at for at, entry in enumerate(common) if time_of(entry)]
        if len(places) > 2:
            raise CannotLift("three tokens meet in one value; a spec has sums over pairs of tokens")
        variables = dict(zip(places, (0, 1), strict=False))
        pair = next((w for w in wide if sum(time_of(e) is not None for e in w) == 2), None)
        if pair is not None:
            variables = {at: t.variable for at, e in enumerate(pair) if (t := time_of(e))}
        for at in places:
            delays = [t.delay for w in wide if (t := time_of(w[at]))]
            entry = common[at]
            time = time_of(entry)
            assert time is not None
            delay = min(delays)
            if len(places) == 2 and any(delays):
                raise CannotLift("a pair of tokens is shifted in time")
            for k, w in enumerate(wide):
                own = time_of(w[at])
                if own is not None and own.delay > delay:
                    nodes[k] = delayed(nodes[k], own.delay - delay)
            common[at] = with_time(entry, replace(time, delay=delay, variable=variables[at]))
        if len(places) == 2:
            for k, w in enumerate(wide):
                own_times = {variables[at]: t for at in places if (t := time_of(w[at]))}
                if len(own_times) == 1:
                    (variable,) = own_times
                    nodes[k] = at_token(nodes[k], variable)
                elif len(own_times) == 2 and own_times[0].variable != 0:
                    nodes[k] = swapped(nodes[k])
        return nodes, common


def _timeless(entry: Entry) -> Entry:
    """A dimension with nothing of its axis of tokens but the size."""
    return tuple(Time(f.size) if isinstance(f, Time) else f for f in entry)


def at_token(node: Node, variable: int) -> Node:
    """Returns a stream at a token of a pair."""
    return node if isinstance(node, Num) else At(node, variable)


def delayed(node: Node, lag: int) -> Node:
    """Returns a stream some tokens later, 0 before the first."""
    if lag == 0:
        return node
    if isinstance(node, Num):
        if lag > 1:
            raise CannotLift("a number is shifted by several tokens")
        return op("*", node, op("-", Num(node.value * 0 + 1), First()))
    return Delay(node.arg, node.lag + lag) if isinstance(node, Delay) else Delay(node, lag)


def filled(node: Node, axes: Sequence[Axis]) -> Node:
    """Returns a node that has all of the axes, and is constant along those it had not."""
    have = axes_below(node, {})
    missing = tuple(a for a in axes_of(axes) if a not in have)
    return op("*", node, Ones(missing)) if missing else node
