"""The names of values in a kernel: where they are bound, what reads them, and how often."""

from __future__ import annotations

from collections.abc import Iterator

from dsfc.kernel_ir.ir import (
    Between,
    Compare,
    Const,
    Cumulate,
    Dot,
    Index,
    InverseUnit,
    Let,
    Load,
    Loop,
    Map,
    Operation,
    Reduce,
    Rename,
    Shift,
    Statement,
    Store,
    ToMiddle,
)


def uses(body: tuple[Statement, ...], deep: bool = True) -> Iterator[str]:
    """Yields the name of a value once for each use of it.

    Args:
        body: statements.
        deep: whether what the bodies of loops use is in it; what enters them is either way.
    """
    for s in body:
        match s:
            case Let():
                yield from operands(s.operation)
            case Store():
                yield s.value
            case Loop():
                yield from (c.first for c in s.carries)
                if deep:
                    yield from uses(s.body)
                    yield from (c.next for c in s.carries)


def bound(body: tuple[Statement, ...]) -> Iterator[str]:
    """Yields the names of all values and counters that statements bind, in loops too."""
    for s in body:
        match s:
            case Let():
                yield s.name
            case Loop():
                yield s.counter
                yield from (name for c in s.carries for name in (c.name, c.last))
                yield from bound(s.body)
            case Store():
                pass


def operands(operation: Operation) -> tuple[str, ...]:
    """Returns the names of the tiles that an operation reads."""
    match operation:
        case Map():
            return operation.operands
        case Rename() | InverseUnit() | Reduce() | Cumulate() | ToMiddle() | Between() | Shift():
            return (operation.operand,)
        case Dot():
            return operation.left, operation.right
        case Compare(right=str(right)):
            return operation.left, right
        case Compare():
            return (operation.left,)
        case Const() | Index() | Load():
            return ()
