"""Where a kernel's loads and stores go, as texts of Triton: bases, offsets and masks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dsfc.kernel_ir.ir import (
    Access,
    Along,
    Argument,
    Axis,
    Int,
    Kernel,
    Let,
    Load,
    Loop,
    Position,
    Statement,
    Store,
    Symbol,
    plus,
    symbols,
    times,
)

from .blocks import ATOM, Block, integer


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a tile.

    Attributes:
        base: entries before its first one, of 64 bits.
        steps: of each axis, entries from one to the next.
        bounds: of each axis, its position.
    """

    base: Int
    steps: tuple[tuple[Axis, Int], ...]
    bounds: tuple[Along, ...]

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The axes of the tile."""
        return tuple(axis for axis, _ in self.steps)


def address(argument: Argument, at: tuple[Position, ...], program: Int) -> Address:
    """Returns the address of a tile of an argument that lies in memory without gaps.

    Args:
        argument: the argument; one of scratch lies there once for every program.
        at: positions.
        program: number of the program.
    """
    base: Int = program if argument.access is Access.SCRATCH else 0
    for size, p in zip(argument.shape, at, strict=True):
        base = plus(times(base, size) if base != 0 else 0, p.start if isinstance(p, Along) else p)
    steps: list[tuple[Axis, Int]] = []
    step: Int = 1
    for size, p in zip(reversed(argument.shape), reversed(at), strict=True):
        if isinstance(p, Along):
            steps.append((p.axis, step))
        step = times(size, step)
    bounds = tuple(p for p in at if isinstance(p, Along))
    return Address(base, tuple(reversed(steps)), bounds)


def offsets(steps: tuple[tuple[Axis, Int], ...], index: Callable[[Axis], str]) -> str:
    """Returns the offsets of a tile's entries, of 32 bits."""
    axes = tuple(axis for axis, _ in steps)
    terms = []
    for axis, step in steps:
        text = Block(index(axis), (axis,)).over(axes).text
        terms.append(text if step == 1 else f"{text} * {integer(step).at_most(ATOM)}")
    return " + ".join(terms)


def conflicts(seen: set[tuple[str, bool]], new: set[tuple[str, bool]]) -> bool:
    """Returns whether threads must wait between accesses: one of them stores what another has.

    Args:
        seen: names of scratch, and whether it was stored to.
        new: the same of what comes next.
    """
    return any(name == n and (stored or s) for name, stored in seen for n, s in new)


def scratch_accesses(statements: tuple[Statement, ...], kernel: Kernel) -> set[tuple[str, bool]]:
    """Returns which scratch statements load (False) and store to (True)."""
    scratch = {a.name for a in kernel.arguments if a.access is Access.SCRATCH}
    return {(n, stored) for n, stored in _accesses(statements) if n in scratch}


def _accesses(statements: tuple[Statement, ...]) -> Iterator[tuple[str, bool]]:
    for s in statements:
        match s:
            case Let(operation=Load(argument=name)):
                yield name, False
            case Store(argument=name):
                yield name, True
            case Loop():
                yield from _accesses(s.body)
            case _:
                pass


def is_whole(p: Along) -> bool:
    """Whether a position takes the whole of a dimension of the axis's own size."""
    size = Symbol(p.axis.size) if isinstance(p.axis.size, str) else p.axis.size
    return p.start == 0 and p.bound == size


def is_multiple(start: Int, size: Int) -> bool:
    """Whether a start is written as a multiple of a size."""
    return start == 0 or any(start == times(Symbol(name), size) for name in symbols(start))
