"""A kernel: one program, started for every index of a grid, that computes with tiles.

A tile is a small array whose axes have names. Operands broadcast by name, `Dot` contracts the one
axis that it names, and nothing has a layout: where an axis lies in memory, and which operand must
be transposed, is the printer's to find. Every value has a name and is bound once. A loop carries
tiles from one iteration to the next. Loads and stores address an argument by one position per
dimension: an integer, or an axis of the tile that starts somewhere and ends before a bound. What a
load reads beyond the bound counts as 0, and a store writes nothing there.

    Kernel = arguments + sizes + grid + body        body = Let | Store | Loop, in order

Sizes are of two kinds. A static one is known when the kernel is compiled (of axes: the number of
keys, the tokens of a chunk); a dynamic one is known when it starts (the length of a sequence).

Nothing here knows a target. `verify` checks a kernel, `interpret` runs it with NumPy (the judge of
every printer).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from dsfc.expr.interval import REALS, Interval


class Kind(Enum):
    """What the entries of a tile are.

    REAL: numbers in the precision that sums are kept in. INDEX: integers. MASK: true or false.
    """

    REAL = "real"
    INDEX = "index"
    MASK = "mask"


# --- integers ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Symbol:
    """An integer by name: a size, an index of the grid, or the counter of a loop."""

    name: str


@dataclass(frozen=True, slots=True)
class Integer:
    """left `operator` right, of integers; `//` rounds down, and `<<` doubles.

    Attributes:
        operator: one of `+ - * // << min max`.
    """

    operator: str
    left: Int
    right: Int


Int = int | Symbol | Integer


def plus(left: Int, right: Int) -> Int:
    """Returns left + right."""
    if isinstance(left, int) and isinstance(right, int):
        return left + right
    if left == 0:
        return right
    return left if right == 0 else Integer("+", left, right)


def minus(left: Int, right: Int) -> Int:
    """Returns left - right."""
    if isinstance(left, int) and isinstance(right, int):
        return left - right
    return left if right == 0 else Integer("-", left, right)


def times(left: Int, right: Int) -> Int:
    """Returns left · right."""
    if isinstance(left, int) and isinstance(right, int):
        return left * right
    if left == 1:
        return right
    return left if right == 1 else Integer("*", left, right)


def floor_div(left: Int, right: Int) -> Int:
    """Returns the quotient, rounded down."""
    return Integer("//", left, right)


def ceil_div(left: Int, right: Int) -> Int:
    """Returns the quotient, rounded up."""
    return floor_div(plus(left, minus(right, 1)), right)


def power_of_two(exponent: Int) -> Int:
    """Returns 2 to the power of an integer."""
    return 1 << exponent if isinstance(exponent, int) else Integer("<<", 1, exponent)


def least(left: Int, right: Int) -> Int:
    """Returns the smaller of two integers."""
    return Integer("min", left, right)


def symbols(e: Int) -> Iterator[str]:
    """Yields the names in an integer."""
    if isinstance(e, Symbol):
        yield e.name
    elif isinstance(e, Integer):
        yield from symbols(e.left)
        yield from symbols(e.right)


# --- tiles ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Axis:
    """A named axis of tiles.

    Attributes:
        name: unique in the kernel.
        size: entries; a number, or the name of a static size.
    """

    name: str
    size: int | str


@dataclass(frozen=True, slots=True)
class Along:
    """A position of a load or store: the entries start, start + 1, … before `bound`.

    Attributes:
        axis: axis of the tile.
        start: first entry.
        bound: entries from here on do not exist.
    """

    axis: Axis
    start: Int
    bound: Int


Position = Int | Along


class Access(Enum):
    """What a kernel does with an argument.

    READ: loads it. WRITE: stores to it, each entry at most once. SCRATCH: memory of one program,
    whose entries are stored before they are loaded.
    """

    READ = "read"
    WRITE = "write"
    SCRATCH = "scratch"


class Storage(Enum):
    """How the entries of an argument lie in memory.

    GIVEN: in the dtype of the caller's tensors. WIDE: in that of sums, float32 at least. KEPT: of
    one kernel for the next; narrow only in bfloat16, which has the exponents of float32.
    """

    GIVEN = "given"
    WIDE = "wide"
    KEPT = "kept"


@dataclass(frozen=True, slots=True)
class Argument:
    """A tensor that a kernel loads or stores.

    Attributes:
        name: unique in the kernel.
        shape: sizes, static or dynamic, of its dimensions.
        promise: an interval that all entries lie in; the caller answers for it.
    """

    name: str
    shape: tuple[Int, ...]
    access: Access = Access.READ
    storage: Storage = Storage.GIVEN
    promise: Interval = REALS


# --- operations ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Const:
    """A number, without axes."""

    value: float


@dataclass(frozen=True, slots=True)
class Index:
    """start + 0, 1, 2, … along an axis."""

    axis: Axis
    start: Int = 0


@dataclass(frozen=True, slots=True)
class Compare:
    """left `operator` right, entry by entry; a mask.

    Attributes:
        operator: one of `< <= ==`.
        left: name of a tile of indices.
        right: the same, or an integer.
    """

    operator: str
    left: str
    right: str | Int


@dataclass(frozen=True, slots=True)
class Map:
    """A function of entries, operands broadcast by the names of their axes.

    Attributes:
        function: `add sub mul div neg max min where and`, or the name of a primitive.
        operands: names; of `where` mask, value, other value; of `and` two masks.
        free: whether an exponential may be of a positive number: where the spec itself has it.
    """

    function: str
    operands: tuple[str, ...]
    free: bool = False


@dataclass(frozen=True, slots=True)
class Rename:
    """The operand with one axis under another name, of the same size."""

    operand: str
    axis: Axis
    to: Axis


@dataclass(frozen=True, slots=True)
class Reduce:
    """The sum, the product or the maximum along an axis.

    Attributes:
        function: `sum`, `product` or `max`.
    """

    function: str
    operand: str
    axis: Axis


@dataclass(frozen=True, slots=True)
class Cumulate:
    """Sums or products of the entries so far along an axis.

    Attributes:
        function: `sum` or `product`.
        reverse: from the last entry on.
        exclusive: without the entry itself.
        block: starts again at every multiple of this many entries; None for never.
    """

    function: str
    operand: str
    axis: Axis
    reverse: bool = False
    exclusive: bool = False
    block: int | None = None


@dataclass(frozen=True, slots=True)
class ToMiddle:
    """Sums of what lies between each entry and the middle of its block of 2 · half entries.

    In the second half, from the middle through the entry; in the first, behind it to the middle.

    Attributes:
        half: a power of two.
        exclusive: in the second half without the entry itself.
        back: the transposed map.
    """

    operand: str
    axis: Axis
    half: Int
    exclusive: bool = False
    back: bool = False


@dataclass(frozen=True, slots=True)
class Between:
    """Products over what lies between two entries: Π_{j < t ≤ i} of the operand, 0 for j > i.

    Attributes:
        axis: of the operand.
        to: axis of i.
        since: axis of j.
        exclusive: over j < t < i, and 0 for j ≥ i.
    """

    operand: str
    axis: Axis
    to: Axis
    since: Axis
    exclusive: bool = False


@dataclass(frozen=True, slots=True)
class Shift:
    """Each entry of the operand further along an axis, by an offset and the place along another.

    Attributes:
        axis: of the operand; at j of it stands what was at j - i - offset, or 0.
        by: axis of i; the operand may lack it.
        back: the other way: at j stands what was at j + i + offset.
    """

    operand: str
    axis: Axis
    by: Axis
    offset: int = 0
    back: bool = False


class Part(Enum):
    """Which entries (row, column) of a matrix are not 0.

    LOWER: column ≤ row. STRICTLY_LOWER: column < row.
    """

    LOWER = "lower"
    STRICTLY_LOWER = "strictly lower"


@dataclass(frozen=True, slots=True)
class Triangle:
    """What a product of matrices may skip.

    Attributes:
        row: axis of rows.
        column: axis of columns.
        part: where there are entries.
        block: of a power of two: entries lie where the row is in the second half, the column in
            the first half of one block of 2 · block; None for all.
    """

    row: Axis
    column: Axis
    part: Part
    block: Int | None = None


@dataclass(frozen=True, slots=True)
class Dot:
    """Σ over an axis of left · right; axes of both that are not summed over are a batch.

    Attributes:
        over: the axis summed over.
        out: entries of the result that are asked for; the others are 0.
        left_part: entries of the left operand that count; the others are taken for 0.
        right_part: those of the right operand.
        exact: whether the factors keep their precision, where a target could round them.
    """

    left: str
    right: str
    over: Axis
    out: Triangle | None = None
    left_part: Triangle | None = None
    right_part: Triangle | None = None
    exact: bool = False


@dataclass(frozen=True, slots=True)
class InverseUnit:
    """(1 + A)⁻¹ of a strictly lower triangular tile A over (row, column)."""

    operand: str
    row: Axis
    column: Axis


@dataclass(frozen=True, slots=True)
class Load:
    """The entries of an argument at positions, one per dimension; 0 beyond a bound."""

    argument: str
    at: tuple[Position, ...]


_Along = Reduce | Cumulate | ToMiddle | Between | Shift
Operation = Const | Index | Compare | Map | Rename | _Along | Dot | InverseUnit | Load


# --- statements ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Let:
    """name = operation."""

    name: str
    operation: Operation


@dataclass(frozen=True, slots=True)
class Store:
    """Writes a tile to an argument; axes of the positions that the tile lacks are broadcast."""

    argument: str
    at: tuple[Position, ...]
    value: str


@dataclass(frozen=True, slots=True)
class Carry:
    """A tile that a loop carries.

    Attributes:
        name: its value inside, at the start of an iteration.
        first: name of its value before the first iteration.
        next: name of what the next iteration gets, bound in the body.
        last: name of its value after the loop.
    """

    name: str
    first: str
    next: str
    last: str


@dataclass(frozen=True, slots=True)
class Loop:
    """for counter in 0, 1, … count - 1, or in the other order.

    Attributes:
        counter: its name.
        count: how many iterations; may be 0.
    """

    counter: str
    count: Int
    carries: tuple[Carry, ...]
    body: tuple[Statement, ...]
    reverse: bool = False


Statement = Let | Store | Loop


@dataclass(frozen=True, slots=True)
class Grid:
    """One dimension of the grid: an index and how many there are."""

    index: str
    count: Int


@dataclass(frozen=True, slots=True)
class Kernel:
    """A program and what it is started with.

    Attributes:
        name: of the function that is printed.
        doc: what it computes, one line.
        arguments: tensors, in the order of the call.
        static: names of static sizes.
        dynamic: names of dynamic sizes.
        grid: dimensions of the grid; programs may run in any order, at once.
        order: axes of tiles; of a tile, the last of them should lie densest in memory.
    """

    name: str
    doc: str
    arguments: tuple[Argument, ...]
    static: tuple[str, ...]
    dynamic: tuple[str, ...]
    grid: tuple[Grid, ...]
    order: tuple[Axis, ...]
    body: tuple[Statement, ...]

    def argument(self, name: str) -> Argument:
        """Returns the argument of a name.

        Raises:
            KeyError: no such argument.
        """
        return {a.name: a for a in self.arguments}[name]
