"""Numbers of a kernel that may be complex: a tile of real parts, and one of imaginary parts.

A complex tensor is an argument with one dimension more, of 2 entries, as `torch.view_as_real` shows
the same memory. A number without imaginary parts has one tile, so that what is real costs no more
than in a kernel of real numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dsfc.kernel_ir.build import KernelBuilder, LoopScope, Tile
from dsfc.kernel_ir.ir import Access, Argument, Axis, Int, Position, Storage, Symbol, Triangle


@dataclass(frozen=True)
class Planes:
    """Numbers as tiles of their parts.

    Attributes:
        real: the real parts.
        imag: the imaginary parts; None where all are 0.
    """

    real: Tile
    imag: Tile | None = None

    def __add__(self, other: Planes) -> Planes:
        return Planes(self.real + other.real, _sum(self.imag, other.imag))

    def __mul__(self, other: Planes) -> Planes:
        return _multiplied(self, other, lambda x, y: x * y)

    @property
    def tiles(self) -> tuple[Tile, ...]:
        """The tiles that there are."""
        return (self.real,) if self.imag is None else (self.real, self.imag)

    def map(self, function: Callable[[Tile], Tile]) -> Planes:
        """Returns a linear function of real coefficients, applied to both parts."""
        return Planes(function(self.real), None if self.imag is None else function(self.imag))

    def named(self, name: str) -> Planes:
        """Gives both tiles the names under which they are printed."""
        for tile, plane in zip(self.tiles, plane_names(name, self.imag is not None), strict=True):
            tile.builder.named(plane, tile)
        return self


def plane_names(name: str, is_complex: bool) -> tuple[str, ...]:
    """Returns the names of the tiles of a number."""
    return (f"{name}_re", f"{name}_im") if is_complex else (name,)


def _sum(x: Tile | None, y: Tile | None) -> Tile | None:
    if x is None or y is None:
        return y if x is None else x
    return x + y


def _multiplied(x: Planes, y: Planes, product: Callable[[Tile, Tile], Tile]) -> Planes:
    """(a + ib) (c + id), where i b or i d may be missing."""
    real = product(x.real, y.real)
    imag = None
    if x.imag is not None and y.imag is not None:
        real = real + product(-x.imag, y.imag)
    if y.imag is not None:
        imag = product(x.real, y.imag)
    if x.imag is not None:
        imag = _sum(imag, product(x.imag, y.real))
    return Planes(real, imag)


def dot(
    x: Planes, y: Planes, over: Axis, *, real: bool = False, out: Triangle | None = None
) -> Planes:
    """Returns Σ over an axis of x · y.

    Args:
        x: the smaller one, of which imaginary parts are negated.
        y: the other.
        over: the axis that is summed over.
        real: whether only the real part is asked for.
        out: entries that are asked for.
    """
    k = x.real.builder

    def product(a: Tile, b: Tile) -> Tile:
        return k.dot(a, b, over, out=out)

    if not real:
        return _multiplied(x, y, product)
    total = product(x.real, y.real)
    if x.imag is not None and y.imag is not None:
        total = total + product(-x.imag, y.imag)
    return Planes(total)


def zeros(k: KernelBuilder, axes: tuple[Axis, ...], is_complex: bool = False) -> Planes:
    """Returns zeros over some axes."""
    never = k.less(k.index(axes[0]), 0)
    for axis in axes[1:]:
        never = k.map("and", never, k.less(k.index(axis), 0))
    zero = k.where(never, 1.0, 0.0)
    return Planes(zero, zero if is_complex else None)


def exp(x: Planes) -> Planes:
    """Returns e^x; its argument stands in the spec, whatever it is."""
    k = x.real.builder
    size = k.map("exp", x.real, free=True)
    if x.imag is None:
        return Planes(size)
    return Planes(size * k.map("cos", x.imag), size * k.map("sin", x.imag))


# --- memory ---------------------------------------------------------------------------------------


def argument(
    k: KernelBuilder,
    name: str,
    shape: tuple[Int, ...],
    is_complex: bool,
    access: Access = Access.READ,
    storage: Storage = Storage.GIVEN,
) -> Argument:
    """Declares an argument; a complex one is wide, and its last dimension is that of both parts."""
    if is_complex:
        return k.argument(name, (*shape, 2), access, Storage.WIDE)
    return k.argument(name, shape, access, storage)


def load(k: KernelBuilder, a: Argument, *at: Position) -> Planes:
    """Returns entries of an argument, complex where it has a dimension more than positions."""
    if len(a.shape) == len(at):
        return Planes(k.load(a, *at))
    real, imag = (k.load(a, *at, plane) for plane in (0, 1))
    return Planes(real, imag).named(a.name)


def store(k: KernelBuilder, a: Argument, *at: Position, value: Planes) -> None:
    """Writes numbers to an argument; to a complex one both parts."""
    if len(a.shape) == len(at):
        assert value.imag is None
        k.store(a, *at, value=value.real)
        return
    imag = k.const(0.0) if value.imag is None else value.imag
    for plane, tile in enumerate((value.real, imag)):
        k.store(a, *at, plane, value=tile)


class Kept:
    """Memory of a program for some numbers, at each of some places.

    Args:
        k: of the kernel.
        places: how many places.
        numbers: axes of each number, and whether it is complex, by name.
    """

    def __init__(
        self, k: KernelBuilder, places: Int, numbers: Mapping[str, tuple[tuple[Axis, ...], bool]]
    ) -> None:
        self._k = k
        self.numbers = dict(numbers)
        self._memory = {
            plane: k.argument(
                f"kept_{plane}", (places, *map(_size, axes)), Access.SCRATCH, Storage.WIDE
            )
            for name, (axes, is_complex) in numbers.items()
            for plane in plane_names(name, is_complex)
        }

    def store(self, at: Int, **numbers: Planes) -> None:
        """Writes some of the numbers of a place."""
        for name, number in numbers.items():
            axes, is_complex = self.numbers[name]
            for plane, tile in zip(plane_names(name, is_complex), number.tiles, strict=True):
                self._k.store(self._memory[plane], at, *map(self._k.all, axes), value=tile)

    def load(self, at: Int) -> dict[str, Planes]:
        """Returns all numbers of a place."""
        return {
            name: Planes(
                *(
                    self._k.load(self._memory[plane], at, *map(self._k.all, axes))
                    for plane in plane_names(name, is_complex)
                )
            )
            for name, (axes, is_complex) in self.numbers.items()
        }


def _size(axis: Axis) -> Int:
    return Symbol(axis.size) if isinstance(axis.size, str) else axis.size


# --- loops ----------------------------------------------------------------------------------------


def carried(**numbers: Planes) -> dict[str, Tile]:
    """Returns the tiles of numbers that a loop carries, by their names."""
    return {
        plane: tile
        for name, number in numbers.items()
        for plane, tile in zip(
            plane_names(name, number.imag is not None), number.tiles, strict=True
        )
    }


def inside(loop: LoopScope, name: str, is_complex: bool) -> Planes:
    """Returns a carried number as it is at the start of an iteration."""
    return Planes(*(loop[plane] for plane in plane_names(name, is_complex)))


def last(loop: LoopScope, name: str, is_complex: bool) -> Planes:
    """Returns a carried number as it is after the loop."""
    return Planes(*(loop.last(plane) for plane in plane_names(name, is_complex)))
