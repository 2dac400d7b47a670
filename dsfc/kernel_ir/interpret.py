"""Runs a kernel with NumPy: the judge of every printer.

It follows the kernel word by word, in the precision asked for, or with entries that are no floating
point numbers at all: `Numbers` says what they are. Nothing on a machine would tell of a
load or a store outside of an argument, of a load of scratch that no store wrote, and of results
that are written twice or not at all: here they are errors.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsfc.expr.table import row
from dsfc.kernel_ir.ir import (
    Access,
    Along,
    Axis,
    Between,
    Compare,
    Const,
    Cumulate,
    Dot,
    Index,
    Int,
    Integer,
    InverseUnit,
    Kernel,
    Let,
    Load,
    Loop,
    Map,
    Operation,
    Part,
    Position,
    Reduce,
    Rename,
    Shift,
    Statement,
    Store,
    Symbol,
    ToMiddle,
    Triangle,
)
from dsfc.kernel_ir.numbers import DOUBLES, Numbers
from dsfc.kernel_ir.types import united

Array = NDArray[Any]


class KernelError(Exception):
    """A kernel reads what is not there, or does not write each entry of its results once."""


def interpret(
    kernel: Kernel,
    arguments: Mapping[str, Array],
    sizes: Mapping[str, int],
    numbers: Numbers = DOUBLES,
) -> dict[str, Array]:
    """Returns what a kernel writes.

    Args:
        kernel: the kernel.
        arguments: what it reads, by name.
        sizes: static and dynamic sizes.
        numbers: what the entries are, float64 if not given.

    Returns:
        the arguments written, by name.

    Raises:
        KernelError: it reads or writes where there is nothing, reads scratch that no store wrote,
            or writes an entry of a result twice, or not at all.
    """
    written = _memories(kernel, Access.WRITE, sizes, numbers.dtype)
    read = {n: np.asarray(x, numbers.dtype) for n, x in arguments.items()}
    for a in kernel.arguments:
        wanted = tuple(value_of(s, sizes) for s in a.shape)
        if a.access is Access.READ and read[a.name].shape != wanted:
            raise KernelError(f"{a.name} has shape {read[a.name].shape}, not {wanted}")
    inputs = {n: _Memory(x, np.ones(x.shape, bool), Access.READ) for n, x in read.items()}
    counts = [range(value_of(g.count, sizes)) for g in kernel.grid]
    for place in itertools.product(*counts):
        scratch = _memories(kernel, Access.SCRATCH, sizes, numbers.dtype)
        integers = dict(sizes) | {g.index: i for g, i in zip(kernel.grid, place, strict=True)}
        with np.errstate(all="ignore"):
            _Program({**inputs, **written, **scratch}, integers, numbers).run(kernel.body)
    for name, memory in written.items():
        if not memory.full.all():
            raise KernelError(f"{name}: no store writes entry {_first(~memory.full)}")
    return {name: memory.array for name, memory in written.items()}


@dataclass(frozen=True, slots=True)
class _Memory:
    """The entries of one argument.

    Attributes:
        array: the entries.
        full: which of them are known, by the caller or by a store.
        access: what the kernel may do with them.
    """

    array: Array
    full: Array
    access: Access


def _memories(
    kernel: Kernel,
    access: Access,
    sizes: Mapping[str, int],
    dtype: Any,  # noqa: ANN401
) -> dict[str, _Memory]:
    """Empty memory for the arguments of one access."""
    shapes = {
        a.name: [value_of(s, sizes) for s in a.shape]
        for a in kernel.arguments
        if a.access is access
    }
    return {
        name: _Memory(np.full(shape, np.nan, dtype), np.zeros(shape, bool), access)
        for name, shape in shapes.items()
    }


def _first(mask: Array) -> tuple[int, ...]:
    """Where a mask holds for the first time."""
    return tuple(int(i) for i in np.argwhere(mask)[0])


class _Value:
    """An array whose dimensions are axes."""

    __slots__ = ("array", "axes")

    def __init__(self, axes: tuple[Axis, ...], array: Array) -> None:
        self.axes, self.array = axes, array

    def over(self, axes: tuple[Axis, ...]) -> Array:
        """Returns the array with these axes, of size 1 where the value lacks one."""
        order = [self.axes.index(a) for a in axes if a in self.axes]
        index = tuple(slice(None) if a in self.axes else None for a in axes)
        return self.array.transpose(order)[index]


class _Inverse(_Value):
    """(1 + A)⁻¹ of a strictly lower triangular A, computed only where more than a product is read.

    A product with it is what the system is solved for, row by row.
    """

    __slots__ = ("_a", "_numbers")

    def __init__(self, axes: tuple[Axis, ...], a: Array, numbers: Numbers) -> None:
        if np.triu(a).any():
            raise KernelError("the inverse of 1 + A of an A that is not strictly lower triangular")
        self.axes, self._a, self._numbers = axes, a, numbers

    @property
    def array(self) -> Array:  # type: ignore[override]  # computed only where it is read
        """The inverse."""
        return self._solved(np.eye(len(self._a), dtype=self._numbers.dtype))

    def takes(self, dot: Dot, right: _Value) -> bool:
        """Returns whether a product is the whole inverse times a right side without its rows."""
        row, column = self.axes
        whole = dot.left_part in (None, Triangle(row, column, Part.LOWER))
        return whole and dot.over == column and row not in right.axes

    def solve(self, right: _Value) -> _Value:
        """Returns what the system is solved for, with the rows of a right side."""
        row, column = self.axes
        at = right.axes.index(column)
        axes = (row, *right.axes[:at], *right.axes[at + 1 :])
        return _Value(axes, self._solved(np.moveaxis(right.array, at, 0)))

    def _solved(self, right: Array) -> Array:
        out = np.empty_like(right)
        for i in range(len(out)):
            known = np.tensordot(self._a[i, :i], out[:i], 1) if i else 0
            out[i] = self._numbers.solved(right[i] - known)
        return out


class _Program:
    """One program of the grid."""

    def __init__(
        self, arguments: dict[str, _Memory], integers: dict[str, int], numbers: Numbers
    ) -> None:
        self._arguments = arguments
        self._integers = integers
        self._numbers = numbers
        self._dtype = numbers.dtype
        self._values: dict[str, _Value] = {}

    def run(self, body: tuple[Statement, ...]) -> None:
        """Runs statements in order."""
        for s in body:
            match s:
                case Let():
                    self._values[s.name] = self._value(s.operation)
                case Store():
                    self._store(s)
                case Loop():
                    self._loop(s)

    def _loop(self, loop: Loop) -> None:
        count = self._int(loop.count)
        carried = [self._values[c.first] for c in loop.carries]
        for i in reversed(range(count)) if loop.reverse else range(count):
            self._integers[loop.counter] = i
            for c, value in zip(loop.carries, carried, strict=True):
                self._values[c.name] = value
            self.run(loop.body)
            carried = [self._values[c.next] for c in loop.carries]
        for c, value in zip(loop.carries, carried, strict=True):
            self._values[c.last] = value

    # --- memory -----------------------------------------------------------------------------------

    def _place(
        self, at: tuple[Position, ...], shape: tuple[int, ...], what: str
    ) -> tuple[tuple[Axis, ...], tuple[Array, ...], tuple[int, ...]]:
        """Axes of the tile, where its entries lie, and how many there are along each axis."""
        axes, live, counts = [], [], []
        for p, size in zip(at, shape, strict=True):
            if isinstance(p, Along):
                start, bound = self._int(p.start), self._int(p.bound)
                index = start + np.arange(self._size(p.axis))
                index = index[index < bound]
                if bound > size or (start < 0 and index.size):
                    raise KernelError(f"{what}: {start} to {bound} of {size} entries")
                axes.append(p.axis)
                counts.append(len(index))
                live.append(index)
            else:
                i = self._int(p)
                if not 0 <= i < size:
                    raise KernelError(f"{what}: entry {i} of {size}")
                live.append(np.array([i]))
        return tuple(axes), np.ix_(*live), tuple(counts)

    def _load(self, load: Load) -> _Value:
        memory = self._arguments[load.argument]
        axes, place, counts = self._place(load.at, memory.array.shape, load.argument)
        if not memory.full[place].all():
            raise KernelError(f"{load.argument}: a load of entries that no store wrote")
        full = np.full([self._size(a) for a in axes], self._number(0), self._dtype)
        full[tuple(map(slice, counts))] = memory.array[place].reshape(counts)
        return _Value(axes, full)

    def _store(self, store: Store) -> None:
        memory = self._arguments[store.argument]
        axes, place, counts = self._place(store.at, memory.array.shape, store.argument)
        value = self._values[store.value]
        if memory.access is Access.WRITE and memory.full[place].any():
            raise KernelError(f"{store.argument}: a second store to an entry")
        whole = np.broadcast_to(value.over(axes), [self._size(a) for a in axes])
        kept = whole[tuple(map(slice, counts))]
        memory.array[place] = kept.reshape(memory.array[place].shape)
        memory.full[place] = True

    # --- values -----------------------------------------------------------------------------------

    def _value(self, operation: Operation) -> _Value:
        match operation:
            case Const(value=value):
                return _Value((), np.asarray(self._number(value), self._dtype))
            case Index(axis=axis):
                start = self._int(operation.start)
                return _Value((axis,), start + np.arange(self._size(axis)))
            case Compare():
                return self._compare(operation)
            case Map():
                return self._map(operation)
            case Rename():
                x = self._values[operation.operand]
                axes = tuple(operation.to if a == operation.axis else a for a in x.axes)
                return _Value(axes, x.array)
            case Reduce():
                x = self._values[operation.operand]
                at = x.axes.index(operation.axis)
                fold = _FOLDS[operation.function]
                folded = np.asarray(fold.reduce(x.array, axis=at))
                return _Value(x.axes[:at] + x.axes[at + 1 :], folded)
            case Cumulate():
                return self._cumulate(operation)
            case ToMiddle():
                return self._to_middle(operation)
            case Between():
                return self._between(operation)
            case Shift():
                return self._shift(operation)
            case Dot():
                return self._dot(operation)
            case InverseUnit():
                a = self._values[operation.operand].over((operation.row, operation.column))
                return _Inverse((operation.row, operation.column), a, self._numbers)
            case Load():
                return self._load(operation)

    def _compare(self, operation: Compare) -> _Value:
        left = self._values[operation.left]
        if isinstance(operation.right, str):
            right = self._values[operation.right]
        else:
            right = _Value((), np.asarray(self._int(operation.right)))
        axes = united(left.axes, right.axes)
        test = {"<": np.less, "<=": np.less_equal, "==": np.equal}[operation.operator]
        return _Value(axes, test(left.over(axes), right.over(axes)))

    def _map(self, operation: Map) -> _Value:
        values = [self._values[x] for x in operation.operands]
        axes = united(*(v.axes for v in values))
        operands = tuple(v.over(axes) for v in values)
        if operation.function in _FUNCTIONS:
            result = np.asarray(_FUNCTIONS[operation.function](*operands))
        else:
            result = np.asarray(self._numbers.apply(row(operation.function), operands, None))
        return _Value(axes, np.broadcast_to(result, [self._size(a) for a in axes]))

    def _cumulate(self, operation: Cumulate) -> _Value:
        x = self._values[operation.operand]
        at = x.axes.index(operation.axis)
        rows = np.moveaxis(x.array, at, 0)
        neutral = 0 if operation.function == "sum" else 1
        block = operation.block or len(rows)
        out = np.empty_like(rows)
        order = range(len(rows) - 1, -1, -1) if operation.reverse else range(len(rows))
        for place, i in enumerate(order):
            if place % block == 0:
                so_far: Any = np.asarray(neutral, self._dtype)
            with_own = so_far + rows[i] if operation.function == "sum" else so_far * rows[i]
            out[i] = so_far if operation.exclusive else with_own
            so_far = with_own
        return _Value(x.axes, np.moveaxis(out, 0, at))

    def _to_middle(self, operation: ToMiddle) -> _Value:
        x, half = self._values[operation.operand], self._int(operation.half)
        at = x.axes.index(operation.axis)
        rows = np.moveaxis(x.array, at, 0)
        out = np.zeros_like(rows)
        for i in range(len(rows)):
            middle = i // (2 * half) * 2 * half + half
            end = i if operation.exclusive else i + 1
            for t in range(middle, end) if i >= middle else range(i + 1, middle):
                source, target = (i, t) if operation.back else (t, i)
                out[target] += rows[source]
        return _Value(x.axes, np.moveaxis(out, 0, at))

    def _between(self, operation: Between) -> _Value:
        x = self._values[operation.operand]
        at = x.axes.index(operation.axis)
        rows = np.moveaxis(x.array, at, 0)
        size = len(rows)
        out = np.zeros((size, size, *rows.shape[1:]), self._dtype)
        last = int(operation.exclusive)
        for j in range(size):
            product = np.ones(rows.shape[1:], self._dtype)
            for i in range(j + last, size):
                if i - last > j:
                    product = product * rows[i - last]
                out[i, j] = product
        rest = tuple(a for a in x.axes if a != operation.axis)
        return _Value((operation.to, operation.since, *rest), out)

    def _shift(self, operation: Shift) -> _Value:
        x, axis, by = self._values[operation.operand], operation.axis, operation.by
        axes = x.axes if by in x.axes else (by, *x.axes)
        places = _Value((axis,), np.arange(self._size(axis))).over(axes)
        way = _Value((by,), np.arange(self._size(by))).over(axes) + operation.offset
        source = places + way if operation.back else places - way
        inside = (source >= 0) & (source < self._size(axis))
        full = np.broadcast_to(x.over(axes), [self._size(a) for a in axes])
        index = np.broadcast_to(np.where(inside, source, 0), full.shape)
        moved = np.take_along_axis(full, index, axes.index(axis))
        return _Value(axes, np.where(inside, moved, 0))

    def _dot(self, operation: Dot) -> _Value:
        left, right = self._values[operation.left], self._values[operation.right]
        right = self._masked(right, operation.right_part)
        if isinstance(left, _Inverse) and left.takes(operation, right):
            return self._masked(left.solve(right), operation.out)
        left = self._masked(left, operation.left_part)
        axes = tuple(a for a in united(left.axes, right.axes) if a != operation.over)
        # NumPy knows 52 letters, a tile has few axes.
        letters = {a: chr(97 + i) for i, a in enumerate((*axes, operation.over))}
        spell = ["".join(letters[a] for a in v.axes) for v in (left, right)]
        out = "".join(letters[a] for a in axes)
        result = np.asarray(np.einsum(f"{spell[0]},{spell[1]}->{out}", left.array, right.array))
        return self._masked(_Value(axes, result), operation.out)

    def _masked(self, value: _Value, part: Triangle | None) -> _Value:
        if part is None:
            return value
        rows, columns = self._size(part.row), self._size(part.column)
        block = None if part.block is None else self._int(part.block)
        mask = _Value((part.row, part.column), _part(part, block, rows, columns))
        return _Value(value.axes, np.where(mask.over(value.axes), value.array, 0))

    def _size(self, axis: Axis) -> int:
        return axis.size if isinstance(axis.size, int) else self._integers[axis.size]

    def _number(self, value: float) -> Any:  # noqa: ANN401 - what the entries are
        # No fraction is infinite, or nan.
        exact = np.isfinite(value)
        return self._numbers.number(Fraction(value)) if exact else value

    def _int(self, e: Int) -> int:
        return value_of(e, self._integers)


def _part(t: Triangle, block: int | None, rows: int, columns: int) -> Array:
    """Where a triangle has entries."""
    i, j = np.arange(rows)[:, None], np.arange(columns)[None, :]
    if block is not None:
        return np.asarray((i // block % 2 == 1) & (j // block == i // block - 1))
    return np.asarray(j <= i if t.part is Part.LOWER else j < i)


_FOLDS = {"sum": np.add, "product": np.multiply, "max": np.maximum}

_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "neg": np.negative,
    "max": np.maximum,
    "min": np.minimum,
    "where": np.where,
    "and": np.logical_and,
}
"""Functions of entries that are no primitive of the language."""


def value_of(e: Int, integers: Mapping[str, int]) -> int:
    """Returns the value of an integer, by the values of the names in it."""
    match e:
        case int():
            return e
        case Symbol(name=name):
            return integers[name]
        case Integer():
            left, right = value_of(e.left, integers), value_of(e.right, integers)
            return _OPERATORS[e.operator](left, right)


_OPERATORS: Mapping[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "<<": lambda a, b: a << b,
    "min": min,
    "max": max,
}
