"""The type of every value of a kernel: its axes, in order, and what its entries are.

An operation whose operands do not fit has no type: that is a `TypeError`, raised where the builder
binds the value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dsfc.expr.table import TABLE, FieldRule
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
    Shift,
    Statement,
    ToMiddle,
    Triangle,
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


ARITIES: Mapping[str, int] = {
    **dict.fromkeys(("add", "sub", "mul", "div", "max", "min", "and"), 2),
    "neg": 1,
    "where": 3,
}
"""Functions of entries that are no primitive of the language, and how many operands each has."""


def type_of(operation: Operation, types: Mapping[str, TileType]) -> TileType:
    """Returns the type of what an operation gives.

    Args:
        operation: the operation.
        types: of all values bound before it.

    Raises:
        KeyError: an operand that nothing bound.
        TypeError: operands that do not fit the operation.
    """
    match operation:
        case Const():
            return TileType(())
        case Index():
            return TileType((operation.axis,), Kind.INDEX)
        case Compare():
            return _compared(operation, types)
        case Map():
            return _mapped(operation, types)
        case Rename():
            t = types[operation.operand]
            _need_axes(operation, t, operation.axis)
            _need_size(operation, operation.axis, operation.to)
            axes = tuple(operation.to if a == operation.axis else a for a in t.axes)
            _need_distinct(operation, axes)
            return TileType(axes, t.kind)
        case Reduce():
            _need_name(operation.function, ("sum", "product", "max"))
            axes = _reals(operation, operation.operand, types, operation.axis)
            return TileType(tuple(a for a in axes if a != operation.axis))
        case Cumulate():
            return _cumulated(operation, types)
        case ToMiddle():
            _reals(operation, operation.operand, types, operation.axis)
            if isinstance(operation.half, int):
                _need_blocks(operation.axis, 2 * operation.half)
            return types[operation.operand]
        case Between():
            axes = _reals(operation, operation.operand, types, operation.axis)
            _need_size(operation, operation.axis, operation.to, operation.since)
            rest = tuple(a for a in axes if a != operation.axis)
            _need_distinct(operation, (operation.to, operation.since, *rest))
            return TileType((operation.to, operation.since, *rest))
        case Shift():
            axes = _reals(operation, operation.operand, types, operation.axis)
            if operation.by == operation.axis:
                raise TypeError(f"a shift along {operation.axis.name} by itself")
            return TileType(axes if operation.by in axes else (operation.by, *axes))
        case Dot():
            return _contracted(operation, types)
        case InverseUnit():
            axes = _reals(operation, operation.operand, types, operation.row, operation.column)
            _need_size(operation, operation.row, operation.column)
            if len(axes) != 2 or operation.row == operation.column:
                raise TypeError(f"the inverse over row and column of a tile over {_names(axes)}")
            return types[operation.operand]
        case Load():
            axes = tuple(p.axis for p in operation.at if isinstance(p, Along))
            _need_distinct(operation, axes)
            return TileType(axes)


def _compared(operation: Compare, types: Mapping[str, TileType]) -> TileType:
    _need_name(operation.operator, ("<", "<=", "=="))
    sides = [operation.left, *([operation.right] if isinstance(operation.right, str) else [])]
    for x in sides:
        _need_kind(operation, x, types, Kind.INDEX)
    return TileType(united(*(types[x].axes for x in sides)), Kind.MASK)


def _mapped(operation: Map, types: Mapping[str, TileType]) -> TileType:
    function, names = operation.function, operation.operands
    if len(names) != _arity(function):
        raise TypeError(f"{function} of {len(names)} operands")
    kinds = [Kind.MASK if function == "and" else Kind.REAL] * len(names)
    if function == "where":
        kinds[0] = Kind.MASK
    for x, kind in zip(names, kinds, strict=True):
        _need_kind(operation, x, types, kind)
    return TileType(united(*(types[x].axes for x in names)), kinds[-1])


def _arity(function: str) -> int:
    """Operands of a function of entries."""
    if function in ARITIES:
        return ARITIES[function]
    if function not in TABLE:
        raise TypeError(f"no function {function!r}")
    row = TABLE[function]
    if row.along_axis or row.fields is FieldRule.COMPLEX:
        raise TypeError(f"{function} is no function of real entries")
    return row.arity


def _cumulated(operation: Cumulate, types: Mapping[str, TileType]) -> TileType:
    _need_name(operation.function, ("sum", "product"))
    _reals(operation, operation.operand, types, operation.axis)
    if operation.block is not None:
        _need_blocks(operation.axis, operation.block)
    return types[operation.operand]


def _need_blocks(axis: Axis, block: int) -> None:
    if isinstance(axis.size, str) or block < 1 or axis.size % block:
        raise TypeError(f"blocks of {block} along {axis.name} of {axis.size} entries")


def _contracted(operation: Dot, types: Mapping[str, TileType]) -> TileType:
    left = _reals(operation, operation.left, types, operation.over)
    right = _reals(operation, operation.right, types, operation.over)
    axes = tuple(a for a in united(left, right) if a != operation.over)
    parts = ((operation.out, axes), (operation.left_part, left), (operation.right_part, right))
    for part, of in parts:
        if part is not None:
            _need_triangle(part, of)
    return TileType(axes)


def _need_triangle(part: Triangle, axes: tuple[Axis, ...]) -> None:
    if part.row == part.column or not {part.row, part.column} <= set(axes):
        names = _names((part.row, part.column))
        raise TypeError(f"a triangle over {names} of a tile over {_names(axes)}")
    _need_size(part, part.row, part.column)
    if isinstance(part.block, int) and (part.block < 1 or part.block & (part.block - 1)):
        raise TypeError(f"a triangle in blocks of {part.block}, no power of two")


def _reals(
    operation: Operation, name: str, types: Mapping[str, TileType], *needed: Axis
) -> tuple[Axis, ...]:
    """Axes of an operand of real entries that has those needed."""
    _need_kind(operation, name, types, Kind.REAL)
    _need_axes(operation, types[name], *needed)
    return types[name].axes


def _need_kind(operation: Operation, name: str, types: Mapping[str, TileType], kind: Kind) -> None:
    if types[name].kind is not kind:
        entries = types[name].kind.value
        raise TypeError(f"{_word(operation)} takes {kind.value} entries, {name} has {entries} ones")


def _need_axes(operation: Operation, operand: TileType, *needed: Axis) -> None:
    for axis in needed:
        if axis not in operand:
            raise TypeError(
                f"{_word(operation)} along {axis.name} of a tile over {_names(operand.axes)}"
            )


def _need_size(operation: Operation | Triangle, *axes: Axis) -> None:
    if len({a.size for a in axes}) > 1:
        sizes = ", ".join(f"{a.name} of {a.size}" for a in axes)
        raise TypeError(f"{_word(operation)} of axes of one size, not {sizes}")


def _need_distinct(operation: Operation, axes: tuple[Axis, ...]) -> None:
    if len(set(axes)) < len(axes):
        raise TypeError(f"{_word(operation)} gives a tile over {_names(axes)}, one of them twice")


def _need_name(name: str, known: tuple[str, ...]) -> None:
    if name not in known:
        raise TypeError(f"no function {name!r}")


def _word(operation: Operation | Triangle) -> str:
    if isinstance(operation, Map | Reduce | Cumulate):
        return operation.function
    return type(operation).__name__.lower()


def _names(axes: tuple[Axis, ...]) -> str:
    return "(" + ", ".join(a.name for a in axes) + ")"


def united(*groups: tuple[Axis, ...]) -> tuple[Axis, ...]:
    """Returns the axes of all groups, each once, the longest group's order first."""
    first = max(groups, key=len, default=())
    rest = (a for group in groups for a in group)
    return tuple(dict.fromkeys((*first, *rest)))
