"""The order in which the entries of a state stand in its vector: head, channel, key fastest.

The order of Sieber et al. 2024, App. A: with it G S is (I ⊗ G) vec S, k vᵀ is (I ⊗ k) v, and
Sᵀ q is (I ⊗ qᵀ) vec S. Keys are the axes that a read or a term of the stage contracts: use decides,
not the declaration.
"""

from __future__ import annotations

from dataclasses import dataclass

from dsfc.expr.tree import Axis
from dsfc.system.ir import Block, Stage, System
from dsfc.system.traverse import terms, trees


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


def roles(system: System, block: Block) -> Roles:
    """Returns the axes of a block by use."""
    stage = _stage_of(system, block)
    states = {b.state for b in stage.blocks}
    used = [t for tree in trees(system) for t in terms(tree) if t.source in states]
    used += [t for b in stage.blocks for f in b.chain for t in f.terms]
    contracted = frozenset[Axis]().union(
        *(t.over for t in used), *(t.matrix.source for t in used if t.matrix)
    )
    heads = tuple(a for a in block.axes if a.heads)
    keys = tuple(a for a in block.axes if a in contracted and not a.heads)
    rest = tuple(a for a in block.axes if a not in heads and a not in keys)
    return Roles(heads, rest, keys)


def _stage_of(system: System, block: Block) -> Stage:
    return next(s for s in system.stages if block in s.blocks)
