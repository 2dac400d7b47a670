"""Operations of a layout map: each moves the entries of an array, and none looks at their values.

An operation takes arrays of any type, so that it is run on the numbers of the entries themselves:
what comes out says which entry goes where. A function of single entries has a name, `Function`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from dsfc.layouts.dims import Dim

Array = NDArray[Any]
Sizes = Mapping[str, int]

ZERO = -1
"""The number of an entry that no published entry gives: it is 0."""


_MOST = 1 << 31
"""Numbers that an array may have that an operation makes longer."""


class MisfitError(Exception):
    """An operation does not fit the array that it is given; the text says why, as a clause."""


class Function(StrEnum):
    """A function of single entries."""

    NEG = "neg"
    EXP = "exp"
    LOG = "log"

    @property
    def inverse(self) -> Function:
        """The function that undoes it, where it has a value."""
        return _INVERSE[self]


_INVERSE = {
    Function.NEG: Function.NEG,
    Function.EXP: Function.LOG,
    Function.LOG: Function.EXP,
}


class Kind(StrEnum):
    """The kind of an argument of an operation."""

    NUMBER = "a whole number"
    NUMBERS = "a list of whole numbers"
    SIZE = "a size"
    SIZES = "a list of sizes"


class Operation(Protocol):
    """An operation: the interface of all of them.

    Attributes:
        word: its name in a map.
        arguments: name of an argument → its kind.
    """

    word: ClassVar[str]
    arguments: ClassVar[Mapping[str, Kind]]

    def apply(self, x: Array, sizes: Sizes) -> Array:
        """Returns the entries in their new places.

        Args:
            x: an array of any type.
            sizes: of all names.

        Raises:
            MisfitError: the array has no shape that the operation takes.
        """
        ...

    def dropped(self, x: Array, sizes: Sizes) -> Array:
        """Returns the entries that have to be 0 and are left out, in one row."""
        ...


@dataclass(frozen=True, slots=True)
class _Whole:
    """An operation that leaves nothing out."""

    def dropped(self, x: Array, sizes: Sizes) -> Array:
        """Returns no entries."""
        return x.reshape(-1)[:0]


@dataclass(frozen=True, slots=True)
class Transpose(_Whole):
    """Puts axes into another order.

    Attributes:
        order: for each new axis, the old one.
    """

    word: ClassVar[str] = "transpose"
    arguments: ClassVar[Mapping[str, Kind]] = MappingProxyType({"order": Kind.NUMBERS})
    order: tuple[int, ...]

    def apply(self, x: Array, sizes: Sizes) -> Array:
        """Returns the array with its axes in order."""
        if sorted(self.order) != list(range(x.ndim)):
            raise MisfitError(f"{list(self.order)} is no order of {x.ndim} axes")
        return x.transpose(self.order)


@dataclass(frozen=True, slots=True)
class Reshape(_Whole):
    """Reads the entries, the last axis first, as an array of another shape.

    Attributes:
        shape: the sizes of the new axes.
    """

    word: ClassVar[str] = "reshape"
    arguments: ClassVar[Mapping[str, Kind]] = MappingProxyType({"shape": Kind.SIZES})
    shape: tuple[Dim, ...]

    def apply(self, x: Array, sizes: Sizes) -> Array:
        """Returns the array in its new shape."""
        shape = tuple(dim.value(sizes) for dim in self.shape)
        if int(np.prod(shape)) != x.size:
            raise MisfitError(f"an array of {shaped(x.shape)} is not one of {shaped(shape)}")
        return x.reshape(shape)


@dataclass(frozen=True, slots=True)
class Split(_Whole):
    """Cuts an axis into parts and keeps one.

    Attributes:
        axis: which.
        parts: the sizes of all parts.
        keep: the number of the part, from 0.
    """

    word: ClassVar[str] = "split"
    arguments: ClassVar[Mapping[str, Kind]] = MappingProxyType(
        {"axis": Kind.NUMBER, "parts": Kind.SIZES, "keep": Kind.NUMBER}
    )
    axis: int
    parts: tuple[Dim, ...]
    keep: int

    def apply(self, x: Array, sizes: Sizes) -> Array:
        """Returns one part."""
        _demand_axis(self.axis, x)
        parts = [dim.value(sizes) for dim in self.parts]
        if not 0 <= self.keep < len(parts):
            raise MisfitError(f"of {len(parts)} parts none has the number {self.keep}")
        if sum(parts) != x.shape[self.axis]:
            written = " + ".join(map(str, parts))
            raise MisfitError(f"the axis has {x.shape[self.axis]} entries, the parts {written}")
        start = sum(parts[: self.keep])
        return x.take(range(start, start + parts[self.keep]), self.axis)


@dataclass(frozen=True, slots=True)
class Flip(_Whole):
    """Turns an axis round, the taps of a convolution for example.

    Attributes:
        axis: which.
    """

    word: ClassVar[str] = "flip"
    arguments: ClassVar[Mapping[str, Kind]] = MappingProxyType({"axis": Kind.NUMBER})
    axis: int

    def apply(self, x: Array, sizes: Sizes) -> Array:
        """Returns the array, its last entry along the axis first."""
        _demand_axis(self.axis, x)
        return np.flip(x, self.axis)


@dataclass(frozen=True, slots=True)
class Permute(_Whole):
    """Puts the entries along an axis into another order.

    Attributes:
        axis: which.
        order: for each new place, the old one.
    """

    word: ClassVar[str] = "permute"
    arguments: ClassVar[Mapping[str, Kind]] = MappingProxyType(
        {"axis": Kind.NUMBER, "order": Kind.NUMBERS}
    )
    axis: int
    order: tuple[int, ...]

    def apply(self, x: Array, sizes: Sizes) -> Array:
        """Returns the array in its new order."""
        _demand_axis(self.axis, x)
        if sorted(self.order) != list(range(x.shape[self.axis])):
            raise MisfitError(f"the order is none of {x.shape[self.axis]} entries, each once")
        return x.take(self.order, self.axis)


@dataclass(frozen=True, slots=True)
class Repeat(_Whole):
    """Writes each entry along an axis several times, one behind the other.

    Attributes:
        axis: which.
        times: how often.
    """

    word: ClassVar[str] = "repeat"
    arguments: ClassVar[Mapping[str, Kind]] = MappingProxyType(
        {"axis": Kind.NUMBER, "times": Kind.SIZE}
    )
    axis: int
    times: Dim

    def apply(self, x: Array, sizes: Sizes) -> Array:
        """Returns the longer array."""
        _demand_axis(self.axis, x)
        times = self.times.value(sizes)
        if x.size * times > _MOST:
            raise MisfitError(f"{times} times {x.size} numbers are more than {_MOST}")
        return x.repeat(times, self.axis)


@dataclass(frozen=True, slots=True)
class BlockDiagonal(_Whole):
    """Puts blocks `[h, a, b]` on the diagonal of a matrix `[h·a, h·b]`; all else is 0."""

    word: ClassVar[str] = "block_diagonal"
    arguments: ClassVar[Mapping[str, Kind]] = MappingProxyType({})

    def apply(self, x: Array, sizes: Sizes) -> Array:
        """Returns the matrix."""
        if x.ndim != 3:
            raise MisfitError(f"blocks are an array of three axes, and here are {x.ndim}")
        h, a, b = x.shape
        if x.size * h > _MOST:
            raise MisfitError(f"a matrix of {h} such blocks has more than {_MOST} numbers")
        matrix = np.full((h, a, h, b), ZERO, dtype=x.dtype)
        matrix[range(h), :, range(h), :] = x
        return matrix.reshape(h * a, h * b)


@dataclass(frozen=True, slots=True)
class Blocks:
    """Takes the blocks `[h, a, b]` on the diagonal of a matrix `[h·a, h·b]`; all else has to be 0.

    Attributes:
        count: how many blocks there are.
    """

    word: ClassVar[str] = "blocks"
    arguments: ClassVar[Mapping[str, Kind]] = MappingProxyType({"count": Kind.SIZE})
    count: Dim

    def apply(self, x: Array, sizes: Sizes) -> Array:
        """Returns the blocks."""
        h = self.count.value(sizes)
        return self._cut(x, h)[range(h), :, range(h), :]

    def dropped(self, x: Array, sizes: Sizes) -> Array:
        """Returns what stands beside the diagonal."""
        h = self.count.value(sizes)
        blocks = self._cut(x, h).transpose(0, 2, 1, 3)
        return blocks[~np.eye(h, dtype=bool)].reshape(-1)

    def _cut(self, x: Array, h: int) -> Array:
        if x.ndim != 2 or not h or x.shape[0] % h or x.shape[1] % h:
            raise MisfitError(f"an array of {shaped(x.shape)} has no {h} blocks on its diagonal")
        return x.reshape(h, x.shape[0] // h, h, x.shape[1] // h)


OPERATIONS: Mapping[str, type[Operation]] = MappingProxyType(
    {
        operation.word: operation
        for operation in (
            *(Transpose, Reshape, Split, Flip, Permute),
            *(Repeat, BlockDiagonal, Blocks),
        )
    }
)
"""Word of an operation in a map → its class."""


def joined(arrays: Sequence[Array], axis: int) -> Array:
    """Returns arrays one behind the other along an axis.

    Raises:
        MisfitError: the other axes are not equal, or there is no such axis.
    """
    try:
        return np.concatenate(arrays, axis)
    except ValueError:  # AxisError is one
        shapes = ", ".join(shaped(x.shape) for x in arrays)
        raise MisfitError(f"arrays of {shapes} cannot be joined along the axis {axis}") from None


def shaped(shape: Sequence[int]) -> str:
    """Returns a shape as messages have it: `4 × 3`; of a number, `no axes`."""
    return " × ".join(map(str, shape)) or "no axes"


def _demand_axis(axis: int, x: Array) -> None:
    if not 0 <= axis < x.ndim:
        raise MisfitError(f"an array of {shaped(x.shape)} has no axis {axis}; axes count from 0")
