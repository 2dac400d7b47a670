"""Axes of tensors: what the dimensions of a traced module are made of.

A dimension is a product of factors: the batch, time, and axes of the module. `view` splits and
merges dimensions, so an axis may fall into parts after values with it were made; and two axes that
an operation pairs become one. `resolve` looks through both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field


@dataclass(eq=False, slots=True)
class Axis:
    """An axis of the module, with what was found out about it since.

    Attributes:
        size: number of its entries in the traced module.
        parts: the axes that it is a product of, from the outermost; none if it was never split.
        same: the axis that it was found to be.
    """

    size: int
    parts: tuple[Axis, ...] = ()
    same: Axis | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """The axis of sequences."""

    size: int


@dataclass(frozen=True, slots=True)
class Time:
    """An axis of tokens: entry k belongs to token `k - delay`.

    Attributes:
        size: number of entries.
        variable: which of the two tokens of a pair it counts; 0 where there is one.
        delay: how many entries lie before the first token; below 0 for tokens that are left out.
    """

    size: int
    variable: int = 0
    delay: int = 0


Factor = Axis | Batch | Time
Entry = tuple[Factor, ...]
"""One dimension of a tensor, from the slowest factor to the fastest; () has size 1."""
Layout = tuple[Entry, ...]


class Mismatch(Exception):
    """Two dimensions cannot be paired, or a dimension cannot be cut as asked."""


def resolve(factor: Factor) -> tuple[Factor, ...]:
    """Returns the factors that a factor is made of by now."""
    if not isinstance(factor, Axis):
        return (factor,)
    while factor.same is not None:
        factor = factor.same
    if not factor.parts:
        return (factor,)
    return tuple(leaf for part in factor.parts for leaf in resolve(part))


def resolved(entry: Iterable[Factor]) -> Entry:
    """Returns an entry with every axis resolved."""
    return tuple(leaf for factor in entry for leaf in resolve(factor))


def axes_of(factors: Iterable[Factor]) -> tuple[Axis, ...]:
    """Returns the resolved axes among factors, in order, each once."""
    return tuple(dict.fromkeys(f for f in resolved(factors) if isinstance(f, Axis)))


def size(entry: Iterable[Factor]) -> int:
    """Returns the size of a dimension."""
    out = 1
    for factor in entry:
        out *= factor.size
    return out


def split(axis: Axis, outer: int) -> tuple[Axis, Axis]:
    """Splits an axis into an outer part of the given size and the rest.

    Raises:
        Mismatch: the size is no divisor.
    """
    if axis.size % outer:
        raise Mismatch
    axis.parts = Axis(outer), Axis(axis.size // outer)
    return axis.parts[0], axis.parts[1]


@dataclass(slots=True)
class Axes:
    """Pairs axes; two axes of one tensor are never made one.

    Attributes:
        layouts: the axes of every tensor so far.
    """

    layouts: list[tuple[Axis, ...]] = field(default_factory=list)

    def note(self, layout: Layout) -> None:
        """Remembers that the axes of a tensor are different axes."""
        axes = tuple(f for entry in layout for f in entry if isinstance(f, Axis))
        if len(axes) > 1:
            self.layouts.append(axes)

    def apart(self, a: Axis, b: Axis) -> bool:
        """Returns whether some tensor has both axes."""
        return any({a, b} <= set(axes_of(layout)) for layout in self.layouts)

    def pair(self, first: Entry, second: Entry) -> list[tuple[Axis, Axis]]:
        """Makes two dimensions one, and returns the pairs of axes that have to stay two.

        Raises:
            Mismatch: they are of different kinds or sizes.
        """
        left, right = list(resolved(first)), list(resolved(second))
        stay: list[tuple[Axis, Axis]] = []
        while left and right:
            a, b = left.pop(0), right.pop(0)
            if isinstance(a, Axis) and isinstance(b, Axis):
                if a.size < b.size:
                    b, rest = split(b, a.size)
                    right.insert(0, rest)
                elif b.size < a.size:
                    a, rest = split(a, b.size)
                    left.insert(0, rest)
                if a is b:
                    continue
                if self.apart(a, b):
                    stay.append((a, b))
                else:
                    b.same = a
            elif type(a) is not type(b) or a.size != b.size:
                raise Mismatch
        if left or right:
            raise Mismatch
        return stay


def regroup(layout: Layout, sizes: Sequence[int]) -> Layout:
    """Returns the layout of a tensor seen with other dimensions, as `view` does.

    Raises:
        Mismatch: a dimension would hold a part of the batch or of time.
    """
    rest = [factor for entry in layout for factor in resolved(entry)]
    out: list[Entry] = []
    for wanted in sizes:
        entry: list[Factor] = []
        left = wanted
        while left > 1:
            if not rest:
                raise Mismatch
            factor = rest.pop(0)
            if left % factor.size == 0:
                entry.append(factor)
                left //= factor.size
            elif isinstance(factor, Axis):
                outer, inner = split(factor, left)
                entry.append(outer)
                rest.insert(0, inner)
                left = 1
            else:
                raise Mismatch
        out.append(tuple(entry))
    if rest:
        raise Mismatch
    return tuple(out)
