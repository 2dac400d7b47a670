"""The type of every value of a kernel: its axes, in order, and what its entries are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dsfc.kernel_ir.ir import (
    Along,
    Axis,
    Between,
    Compare,
    Const,
    Cumulate,
    Dot,
    Index,
    InverseUnit,
    Kernel,
    Kind,
    Let,
    Load,
    Loop,
    Map,
    Operation,
    Reduce,
    Rename,
    Statement,
)


@dataclass(frozen=True, slots=True)
class TileType:
    """The type of a tile.

    Attributes:
        axes: in the order that the operation suggests: printers may lay a tile out otherwise.
    """

    axes: tuple[Axis, ...]
    kind: Kind = Kind.REAL

    def __contains__(self, axis: Axis) -> bool:
        """Returns whether the tile has an axis."""
        return axis in self.axes


def types_of(kernel: Kernel) -> dict[str, TileType]:
    """Returns the type of every value, carried ones too.

    Raises:
        KeyError: a value is read that nothing bound.
    """
    types: dict[str, TileType] = {}
    _bind(kernel.body, types)
    return types


def _bind(body: tuple[Statement, ...], types: dict[str, TileType]) -> None:
    for s in body:
        match s:
            case Let():
                types[s.name] = type_of(s.operation, types)
            case Loop():
                for c in s.carries:
                    types[c.name] = types[c.last] = types[c.first]
                _bind(s.body, types)
            case _:
                pass


def type_of(operation: Operation, types: Mapping[str, TileType]) -> TileType:
    """Returns the type of what an operation gives."""
    match operation:
        case Const():
            return TileType(())
        case Index():
            return TileType((operation.axis,), Kind.INDEX)
        case Compare(left=left, right=str(right)):
            return TileType(united(types[left].axes, types[right].axes), Kind.MASK)
        case Compare(left=left):
            return TileType(types[left].axes, Kind.MASK)
        case Map():
            axes = united(*(types[x].axes for x in operation.operands))
            kind = Kind.MASK if operation.function == "and" else Kind.REAL
            return TileType(axes, kind)
        case Rename():
            t = types[operation.operand]
            axes = tuple(operation.to if a == operation.axis else a for a in t.axes)
            return TileType(axes, t.kind)
        case Reduce():
            axes = types[operation.operand].axes
            return TileType(tuple(a for a in axes if a != operation.axis))
        case Cumulate():
            return types[operation.operand]
        case Between():
            axes = tuple(a for a in types[operation.operand].axes if a != operation.axis)
            return TileType((operation.to, operation.since, *axes))
        case Dot():
            axes = united(types[operation.left].axes, types[operation.right].axes)
            return TileType(tuple(a for a in axes if a != operation.over))
        case InverseUnit():
            return types[operation.operand]
        case Load():
            return TileType(tuple(p.axis for p in operation.at if isinstance(p, Along)))


def united(*groups: tuple[Axis, ...]) -> tuple[Axis, ...]:
    """Returns the axes of all groups, each once, the longest group's order first."""
    first = max(groups, key=len, default=())
    rest = (a for group in groups for a in group)
    return tuple(dict.fromkeys((*first, *rest)))
