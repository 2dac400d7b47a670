"""The order in which the entries of a state stand in its vector: head, channel, key fastest.

The paper's order (P0 App. A): with it G S is (I ⊗ G) vec S, k vᵀ is (I ⊗ k) v, and Sᵀ q is
(I ⊗ qᵀ) vec S. Keys are the axes that a read or a term of the stage contracts: use decides, not
the declaration.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dsfc.primitives.expr import Axis, Expr
from dsfc.system.ir import (
    Block,
    Cast,
    Gate,
    MapOut,
    Post,
    Product,
    Ratio,
    Read,
    ReadOut,
    Stage,
    Sum,
    SumOver,
    System,
)


@dataclass(frozen=True, slots=True)
class Roles:
    """The axes of a block by use.

    Attributes:
        heads: declared to enumerate independent heads.
        channels: neither head nor key.
        keys: contracted by a read or by a term of the stage.
    """

    heads: tuple[Axis, ...]
    channels: tuple[Axis, ...]
    keys: tuple[Axis, ...]

    @property
    def order(self) -> tuple[Axis, ...]:
        """All axes, the fastest last."""
        return (*self.heads, *self.channels, *self.keys)


def reads_in(r: ReadOut) -> Iterator[Read]:
    """Yields every read of a read-out tree."""
    match r:
        case Read():
            yield r
        case Gate(arg=a) | MapOut(arg=a) | Cast(arg=a) | SumOver(arg=a):
            yield from reads_in(a)
        case Ratio(num=n, den=d):
            yield from reads_in(n)
            yield from reads_in(d)
        case Product(args) | Sum(args) | Post(args=args):
            for a in args:
                yield from reads_in(a)


def all_reads(system: System) -> Iterator[Read]:
    """Yields every read of a System, those that streams are made of included."""
    for s in system.streams:
        if not isinstance(s.value, Expr):
            yield from reads_in(s.value)
    for o in system.outputs:
        yield from reads_in(o.value)


def roles(system: System, block: Block) -> Roles:
    """Returns the axes of a block by use."""
    stage = _stage_of(system, block)
    states = {b.state for b in stage.blocks}
    terms = [t for r in all_reads(system) for t in r.terms if t.source in states]
    terms += [t for b in stage.blocks for f in b.chain for t in f.terms]
    contracted = frozenset[Axis]().union(
        *(t.over for t in terms), *(t.matrix.source for t in terms if t.matrix)
    )
    heads = tuple(a for a in block.axes if a.heads)
    keys = tuple(a for a in block.axes if a in contracted and not a.heads)
    rest = tuple(a for a in block.axes if a not in heads and a not in keys)
    return Roles(heads, rest, keys)


def _stage_of(system: System, block: Block) -> Stage:
    return next(s for s in system.stages if block in s.blocks)
