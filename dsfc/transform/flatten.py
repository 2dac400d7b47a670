"""A System with its read-outs taken apart: reads and caches are streams, the rest is expressions.

Read-out trees compute on the values of their leaves like any expression; with the leaves named, a
tree is one expression, and token-wise algebra (derivatives above all) needs one set of rules.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dsfc.expr.build import add, div, mul, prim, total
from dsfc.expr.tree import Axis, Expr, Field, Map, Now, Ref, Time, join
from dsfc.system.dependency_order import home_of, in_order, stage_key
from dsfc.system.formulas import guarded
from dsfc.system.ir import (
    Cache,
    Cast,
    Direct,
    Gate,
    MapOut,
    MaxPlus,
    Output,
    Post,
    Product,
    Ratio,
    Read,
    ReadOut,
    Stage,
    Stream,
    Sum,
    SumOver,
    System,
)
from dsfc.transform.terms import Names, result_axes

Leaf = Expr | Read | Cache | MaxPlus


@dataclass(frozen=True, slots=True)
class Node:
    """A named value: an expression, a read of states, a cache or a running maximum."""

    name: str
    value: Leaf
    axes: tuple[Axis, ...]
    field: Field
    constant: bool = False

    @property
    def ref(self) -> Ref:
        """The value at the present token."""
        if self.constant:
            return Ref(self.name, frozenset(self.axes), self.field, Time.CONST, None)
        return Ref(self.name, frozenset(self.axes), self.field, Time.TOKEN, Now(0))

    @property
    def stream(self) -> Stream:
        """The same as a stream of a System."""
        return Stream(self.name, self.value, self.axes, self.field, self.constant)


@dataclass(frozen=True, slots=True)
class Flat:
    """A System taken apart.

    Attributes:
        order: nodes and stages, each behind everything it depends on.
        outputs: output name → its value as an expression over nodes.
    """

    order: tuple[Node | Stage, ...]
    outputs: tuple[tuple[Output, Expr], ...]

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes in order."""
        return tuple(n for n in self.order if isinstance(n, Node))


def flatten(system: System, names: Names) -> Flat:
    """Returns the System with read-outs taken apart.

    Args:
        system: the System.
        names: makes names for the leaves of read-outs.
    """
    taker = _Taker(system, names)
    nodes: list[Node] = []
    for s in system.streams:
        value: Leaf
        if isinstance(s.value, Expr | Read | Cache | MaxPlus):
            value = s.value
        else:
            value = taker.expr(s.value, s.name)
            nodes.extend(taker.taken())
        nodes.append(Node(s.name, value, s.axes, s.field, s.constant))
    outputs: list[tuple[Output, Expr]] = []
    for o in system.outputs:
        outputs.append((o, taker.expr(o.value, o.name)))
        nodes.extend(taker.taken())
    return Flat(_sorted(nodes, system.stages), tuple(outputs))


def read_out_type(tree: ReadOut, system: System) -> tuple[tuple[Axis, ...], Field]:
    """Returns the axes and the field of a read-out."""
    value = _Taker(system, Names.of(system)).expr(tree, "value")
    return tuple(sorted(value.axes)), value.field


class _Taker:
    def __init__(self, system: System, names: Names) -> None:
        self._axes = {b.state: frozenset(b.axes) for b in system.blocks}
        self._fields = {b.state: b.field for b in system.blocks}
        self._names = names
        self._new: list[Node] = []

    def taken(self) -> list[Node]:
        """Returns the leaves found since the last call."""
        out, self._new = self._new, []
        return out

    def expr(self, r: ReadOut, wish: str) -> Expr:
        match r:
            case Direct(value):
                return value
            case Read():
                return self._named(r, *self._read_type(r), f"{wish}_read")
            case Cache(past):
                return self._named(r, past.axes, past.field, f"{wish}_sum")
            case MaxPlus(log_decay, log_weight):
                axes = log_decay.axes | log_weight.axes
                return self._named(r, axes, Field.REAL, f"{wish}_max")
            case Gate(factor, arg):
                return mul(factor, self.expr(arg, wish))
            case Product(args):
                return mul(*(self.expr(a, wish) for a in args))
            case Sum(args):
                return add(*(self.expr(a, wish) for a in args))
            case Ratio(numerator, denominator, guard):
                below = guarded(self.expr(denominator, wish), guard)
                return div(self.expr(numerator, wish), below)
            case Cast(part, arg):
                return prim(part.name.lower(), self.expr(arg, wish))
            case MapOut(map, arg):
                return Map(map, self.expr(arg, wish))
            case Post(name, args, axis):
                return prim(name, *(self.expr(a, wish) for a in args), axis=axis)
            case SumOver(axis, arg):
                return total((axis,), self.expr(arg, wish))

    def _named(
        self, value: Read | Cache | MaxPlus, axes: Iterable[Axis], kind: Field, wish: str
    ) -> Expr:
        node = Node(self._names.fresh(wish), value, tuple(sorted(axes)), kind)
        self._new.append(node)
        return node.ref

    def _read_type(self, read: Read) -> tuple[frozenset[Axis], Field]:
        axes: frozenset[Axis] = frozenset()
        kind = Field.REAL
        if read.direct is not None:
            axes, kind = read.direct.axes, read.direct.field
        for t in read.terms:
            axes |= result_axes(t, self._axes[t.source])
            maps = [m.field for m in (t.matrix, t.after) if m is not None]
            kind = max(kind, self._fields[t.source], join((t.left.type, t.right.type)).field, *maps)
        return axes, kind


def _sorted(nodes: list[Node], stages: tuple[Stage, ...]) -> tuple[Node | Stage, ...]:
    """Dependency order, otherwise as given."""
    table: dict[str, Node | Stage] = {n.name: n for n in nodes}
    table |= {stage_key(s): s for s in stages}
    values = {k: v if isinstance(v, Stage) else v.value for k, v in table.items()}
    return tuple(table[key] for key in in_order(values, home_of(stages)))
