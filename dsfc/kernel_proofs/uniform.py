"""Why a proof for one chunk is one for all: iterations and programs are one map of their parts.

A kernel is uniform where each dimension of its arguments is addressed in one way throughout:

    by the grid     entry i, for each i below the size: other programs see other entries
    in parts        a part of an axis, for each part of the grid
    as a whole      all entries of an axis
    in time         entries chunk · T + t below the length, or the token of a loop's counter

and where no other integer of it depends on a counter, on an index of the grid or on the length, and
one loop carries one tile: the state, which it starts with as it is loaded, which is read nowhere
else, and which is stored after it. Then iteration c does to tokens c · T, c · T + 1, … and to the
state what the first one does to tokens 0, 1, …, of a sequence as long as what is left; and a token
beyond the length is one of zeros. So what holds of one whole chunk with any state holds of all
lengths, by induction over the chunks, if a token of zeros leaves the recurrence's state as it is.

An axis that no operation names is one whose entries never meet: tiles broadcast along it. What
holds of one entry holds of any number, in parts of any width.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dsfc.kernel_ir.ir import (
    Access,
    Along,
    Axis,
    Between,
    Compare,
    Cumulate,
    Dot,
    Index,
    Int,
    InverseUnit,
    Kernel,
    Let,
    Load,
    Loop,
    Operation,
    Position,
    Reduce,
    Rename,
    Shift,
    Statement,
    Store,
    Symbol,
    ToMiddle,
    Triangle,
    ceil_div,
    symbols,
    times,
)
from dsfc.kernel_ir.uses import uses
from dsfc.kernel_proofs.exact import Undecided


@dataclass(frozen=True, slots=True)
class Uniform:
    """How a uniform kernel divides its work.

    Attributes:
        time: name of the size of the sequence.
        chunk: tokens of an iteration; of a kernel without a loop, the one token that it computes.
        loops: whether there is a loop over the sequence.
        parts: size of a dimension → size of the parts of it that programs have.
        any_size: sizes of dimensions whose entries never meet.
        wholes: size of a dimension that every program has all of → its axis.
    """

    time: str
    chunk: int
    loops: bool
    parts: Mapping[str, str]
    any_size: frozenset[str]
    wholes: Mapping[str, Axis]


def uniform(kernel: Kernel) -> Uniform:
    """Returns how a kernel divides its work.

    Raises:
        Undecided: it is not uniform; the text says where.
    """
    loops = [s for s in kernel.body if isinstance(s, Loop)]
    if len(loops) > 1 or any(isinstance(s, Loop) for x in loops for s in x.body):
        raise Undecided("it has more than one loop")
    if any(a.access is Access.SCRATCH for a in kernel.arguments):
        raise Undecided("it keeps values in scratch memory")
    _check_integers(kernel.body)
    loop = loops[0] if loops else None
    timed = _Time.of(kernel, loop)
    _check_time(kernel, loop, timed)
    ways: dict[str, Position] = {}
    for label, position in _positions(kernel, kernel.body):
        if label != timed.label and ways.setdefault(label, position) != position:
            raise Undecided(f"it addresses dimensions of size {label} in several ways")
    parts, met = _check_ways(kernel, ways)
    axes = {label: p.axis for label, p in ways.items() if isinstance(p, Along)}
    if len(set(axes.values())) < len(axes):
        raise Undecided("one axis runs along dimensions of several sizes")
    named = {a for s in _lets(kernel.body) for a in axes_named(s.operation)}
    apart = {label for label, axis in axes.items() if axis not in named}
    wholes = {label: axis for label, axis in axes.items() if label not in parts}
    if loop is not None:
        _check_state(kernel, loop)
    return Uniform(
        timed.label, timed.tokens, loop is not None, parts, frozenset(apart | met), wholes
    )


@dataclass(frozen=True, slots=True)
class _Time:
    """How time is addressed.

    Attributes:
        label: name of the size of the sequence.
        tokens: tokens of an iteration.
        counter: of the loop; None where there is none.
        by_token: whether an iteration is one token, at the counter.
    """

    label: str
    tokens: int
    counter: str | None
    by_token: bool

    @staticmethod
    def of(kernel: Kernel, loop: Loop | None) -> _Time:
        """Returns how the loop of a kernel goes through time."""
        if loop is None:
            labels = {label for label, p in _positions(kernel, kernel.body) if p == 0}
            if len(labels) != 1:
                raise Undecided("it has neither a loop nor a token")
            return _Time(labels.pop(), 1, None, True)
        if loop.reverse:
            raise Undecided("its loop goes back in time")
        if isinstance(loop.count, Symbol):
            return _Time(loop.count.name, 1, loop.counter, True)
        labels = set(symbols(loop.count))
        starts = {
            p.axis.size: label
            for label, p in _positions(kernel, loop.body)
            if isinstance(p, Along) and label in labels and isinstance(p.axis.size, int)
        }
        for size, label in starts.items():
            if isinstance(size, int) and loop.count == ceil_div(Symbol(label), size):
                return _Time(label, size, loop.counter, False)
        raise Undecided("its loop does not run once for each chunk")

    def is_at(self, position: Position) -> bool:
        """Returns whether a position is that of the tokens of an iteration."""
        if self.counter is None:
            return position == 0
        counter = Symbol(self.counter)
        if self.by_token:
            return position == counter
        return isinstance(position, Along) and (position.axis.size, position.start) == (
            self.tokens,
            times(counter, self.tokens),
        ) and position.bound == Symbol(self.label)  # fmt: skip


def _check_time(kernel: Kernel, loop: Loop | None, timed: _Time) -> None:
    """Checks that time is addressed by the loop, and all that the loop stores has a time."""
    inside = kernel.body if loop is None else loop.body
    if any(label == timed.label and not timed.is_at(p) for label, p in _positions(kernel, inside)):
        raise Undecided("it addresses tokens other than those of its iteration")
    if loop is None:
        return
    outside = tuple(s for s in kernel.body if s is not loop)
    if any(label == timed.label for label, _ in _positions(kernel, outside)):
        raise Undecided("it addresses tokens outside of its loop")
    for s in loop.body:
        if isinstance(s, Store) and Symbol(timed.label) not in kernel.argument(s.argument).shape:
            raise Undecided(f"its loop stores to {s.argument}, which has no time")


def _check_ways(kernel: Kernel, ways: Mapping[str, Position]) -> tuple[dict[str, str], set[str]]:
    """Returns the sizes of parts, by size; and the sizes that the grid enumerates."""
    parts: dict[str, str] = {}
    enumerated: set[str] = set()
    grid = {g.index: g.count for g in kernel.grid}
    used: list[str] = []
    for label, p in ways.items():
        size = Symbol(label)
        if isinstance(p, Symbol) and grid.get(p.name) == size:
            enumerated.add(label)
            used.append(p.name)
        elif isinstance(p, Along) and isinstance(p.axis.size, str) and p.bound == size:
            width = Symbol(p.axis.size)
            of = [i for i, n in grid.items() if n == ceil_div(size, width)]
            if p.start == 0 and width == size:
                continue
            if len(of) != 1 or p.start != times(Symbol(of[0]), width):
                raise Undecided(f"it does not divide dimensions of size {label} into parts")
            parts[label] = width.name
            used.append(of[0])
        else:
            raise Undecided(f"it addresses dimensions of size {label} in a way of its own")
    if sorted(used) != sorted(grid):
        raise Undecided("an index of its grid is used for no dimension, or for several")
    if len(set(parts.values())) < len(parts):
        raise Undecided("dimensions of several sizes have parts of one")
    return parts, enumerated


def _check_state(kernel: Kernel, loop: Loop) -> None:
    """Checks that the loop carries the state alone, from where it is loaded to where it goes."""
    if len(loop.carries) != 1:
        raise Undecided("its loop carries more than one tile")
    (carry,) = loop.carries
    loads = {s.name: s.operation for s in kernel.body if isinstance(s, Let)}
    first = loads.get(carry.first)
    stores = [s for s in kernel.body if isinstance(s, Store)]
    if not isinstance(first, Load) or len(stores) != 1 or stores[0].value != carry.last:
        raise Undecided("its loop does not carry the state as it is loaded and stored")
    (store,) = stores
    reads = [s for s in _lets(kernel.body) if _is_load_of(s.operation, first.argument)]
    if len(reads) != 1 or list(uses(kernel.body)).count(carry.first) != 1:
        raise Undecided("it reads the first state after its first iteration")
    if store.at != first.at or (first.argument, store.argument) != ("S", "S_last"):
        raise Undecided("the last state is not stored where the first is loaded")


def _is_load_of(operation: Operation, argument: str) -> bool:
    return isinstance(operation, Load) and operation.argument == argument


def _check_integers(body: tuple[Statement, ...]) -> None:
    """Checks that no integer but those of positions and of the loop depends on anything."""
    for s in _lets(body):
        if any(True for e in _integers(s.operation) for _ in symbols(e)):
            raise Undecided(f"{s.name} depends on an integer that is not the same everywhere")


def _lets(body: tuple[Statement, ...]) -> Iterator[Let]:
    for s in body:
        if isinstance(s, Let):
            yield s
        elif isinstance(s, Loop):
            yield from _lets(s.body)


def _positions(kernel: Kernel, body: tuple[Statement, ...]) -> Iterator[tuple[str, Position]]:
    """Yields the size of each dimension that is addressed, and its position."""
    for s in body:
        match s:
            case Loop():
                yield from _positions(kernel, s.body)
            case Let(operation=Load() as access) | (Store() as access):
                shape = kernel.argument(access.argument).shape
                for size, position in zip(shape, access.at, strict=True):
                    if not isinstance(size, Symbol):
                        raise Undecided(f"a size of {access.argument} is computed")
                    yield size.name, position
            case _:
                pass


def _integers(operation: Operation) -> Iterator[Int]:
    match operation:
        case Index(start=start):
            yield start
        case Compare(right=right) if not isinstance(right, str):
            yield right
        case ToMiddle(half=half):
            yield half
        case Dot():
            yield from (t.block for t in _triangles(operation) if t.block is not None)
        case _:
            pass


def _triangles(dot: Dot) -> list[Triangle]:
    return [t for t in (dot.out, dot.left_part, dot.right_part) if t is not None]


def axes_named(operation: Operation) -> tuple[Axis, ...]:
    """Returns the axes that an operation names, so that entries along them meet."""
    match operation:
        case Index(axis=axis) | Reduce(axis=axis) | Cumulate(axis=axis) | ToMiddle(axis=axis):
            return (axis,)
        case Rename():
            return operation.axis, operation.to
        case Between():
            return operation.axis, operation.to, operation.since
        case Shift():
            return operation.axis, operation.by
        case InverseUnit():
            return operation.row, operation.column
        case Dot():
            sides = (a for t in _triangles(operation) for a in (t.row, t.column))
            return operation.over, *sides
        case _:
            return ()
