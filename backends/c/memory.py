"""Where the values of a kernel lie in memory, and how an entry of one is written in C."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from dsfc.kernel_ir.ir import (
    Access,
    Along,
    Argument,
    Axis,
    Compare,
    Const,
    Index,
    Kernel,
    Loop,
    Map,
    Position,
    Rename,
    Statement,
)

from .expressions import function_call, integer, number
from .loop_fusion import Run
from .schedule import Schedule
from .text import product, size, times, total


@dataclass(frozen=True)
class Place:
    """Where a tile lies.

    Attributes:
        pointer: C expression of its first entry; of a tile without axes, its value.
        strides: of its axes, C expressions.
    """

    pointer: str
    strides: dict[Axis, str]

    def entry(self, indices: dict[Axis, str]) -> str:
        """Returns the entry at some indices."""
        if not self.strides:
            return self.pointer
        return f"{self.pointer}[{total(product(indices[a], s) for a, s in self.strides.items())}]"

    def at(self, indices: dict[Axis, str]) -> str:
        """Returns the pointer to an entry; axes that are not named are at their start."""
        terms = [product(indices[a], s) for a, s in self.strides.items() if a in indices]
        offset = total(terms)
        return self.pointer if offset == "0" else f"{self.pointer} + {offset}"


class Memory:
    """The values of a kernel, and the memory that they have so far.

    Tiles lie in slots; a slot is used again when the tile in it is not read any more.

    Attributes:
        schedule: where each value is computed.
        places: where the values in memory lie.
        slots: the size of each slot, a C expression.
        held: value → its slot.
        targets: value → pointer that it must be written to.
        locals: values that are variables of the loops that are open.
    """

    def __init__(self, kernel: Kernel, schedule: Schedule) -> None:
        self.schedule = schedule
        self.places: dict[str, Place] = {}
        self.slots: list[str] = []
        self.held: dict[str, int] = {}
        self.targets: dict[str, str] = {}
        self.locals: set[str] = set()
        self._free: dict[str, list[int]] = {}
        self._readers: dict[str, list[Statement]] = {}
        for s in _flat(kernel.body):
            for name in dict.fromkeys(self._reads_of(s)):
                self._readers.setdefault(name, []).append(s)
        self._reads = Counter(n for s in _flat(kernel.body) for n in self._reads_of(s))
        self._rank = {a: i for i, a in enumerate(kernel.order)}

    def use(self, name: str, indices: dict[Axis, str]) -> str:
        """Returns an entry of a value, computed there where the value has no memory."""
        if name in self.locals:
            return name
        if name in self.schedule.inlined:
            return self.formula(name, indices)
        return self.places[name].entry(indices)

    def formula(self, name: str, indices: dict[Axis, str]) -> str:
        """Returns the formula of an entry of a value."""
        match self.schedule.operations[name]:
            case Const(value=value):
                return number(value)
            case Index(axis=axis, start=start):
                at = indices[axis]
                return at if start == 0 else f"({integer(start)} + {at})"
            case Compare(operator=operator, left=left, right=right):
                other = self.use(right, indices) if isinstance(right, str) else integer(right)
                return f"({self.use(left, indices)} {operator} {other})"
            case Map(function=function, operands=xs):
                return function_call(function, [self.use(x, indices) for x in xs])
            case operation:
                raise AssertionError(f"{name}: {operation} is not computed entry by entry")

    def is_kept(self, name: str, run: Run) -> bool:
        """Returns whether a statement outside of a run reads a value."""
        return any(not run.holds(s) for s in self._readers.get(name, ()))

    def is_read(self, name: str, run: Run) -> bool:
        """Returns whether a statement of a run reads a value."""
        return any(run.holds(s) for s in self._readers.get(name, ()))

    def new(self, name: str) -> Place:
        """Gives a value memory, and returns where."""
        axes = self.ordered(self.schedule.types[name].axes)
        pointer = self.target_of(name)
        if pointer is None:
            slot = self.allocate(times(size(a) for a in axes))
            self.held[name] = slot
            pointer = f"slot_{slot}"
        self.places[name] = Place(pointer, self.dense(axes))
        return self.places[name]

    def target_of(self, name: str) -> str | None:
        """Returns where a value must be written: it, or the sum that is added up in its place."""
        if name in self.targets:
            return self.targets[name]
        for name_of_sum, addition in self.schedule.additions.items():
            if addition.base == name and self._uses_once(name):
                target = self.target_of(name_of_sum)
                if target is not None:
                    self.targets[name] = target
                return target
        return None

    def _uses_once(self, name: str) -> bool:
        return self._reads[name] == 1

    def _reads_of(self, s: Statement) -> Iterator[str]:
        match s:
            case Loop():
                for c in s.carries:
                    yield c.first
                    yield c.next
            case _:
                yield from self.schedule.reads(s)

    def dense(self, axes: tuple[Axis, ...]) -> dict[Axis, str]:
        """Returns the strides of a tile without gaps."""
        sizes = [size(a) for a in axes]
        return {a: times(sizes[k + 1 :]) or "1" for k, a in enumerate(axes)}

    def allocate(self, entries: str) -> int:
        """Returns a slot of a size that no value holds."""
        free = self._free.setdefault(entries, [])
        if free:
            return free.pop()
        self.slots.append(entries)
        return len(self.slots) - 1

    def release(self, name: str) -> None:
        """Gives back the slots of a value."""
        for key in (name, f"{name}__a", f"{name}__b"):
            slot = self.held.pop(key, -1)
            if slot >= 0:
                self._free[self.slots[slot]].append(slot)

    def root(self, name: str) -> str:
        """Returns the value whose memory a value lies in."""
        operation = self.schedule.operations.get(name)
        while isinstance(operation, Rename):
            name = operation.operand
            operation = self.schedule.operations.get(name)
        return name

    def ordered(self, axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
        """Returns the axes in the order of the kernel, the densest last."""
        return tuple(sorted(axes, key=lambda a: self._rank[a]))


def argument_place(argument: Argument, at: tuple[Position, ...]) -> Place:
    """Returns where the entries of an argument at some positions lie."""
    names = [f"{argument.name}__{k}" for k in range(len(argument.shape))]
    if argument.access is not Access.READ:
        sizes = [integer(n) for n in argument.shape]
        names = [times(sizes[k + 1 :]) or "1" for k in range(len(sizes))]
    strides: dict[Axis, str] = {}
    terms = []
    for p, stride in zip(at, names, strict=True):
        if isinstance(p, Along):
            strides[p.axis] = stride
            terms.append(product(integer(p.start), stride))
        else:
            terms.append(product(integer(p), stride))
    offset = total(terms)
    pointer = argument.name if offset == "0" else f"({argument.name} + {offset})"
    return Place(pointer, strides)


def _flat(body: tuple[Statement, ...]) -> Iterator[Statement]:
    for s in body:
        yield s
        if isinstance(s, Loop):
            yield from _flat(s.body)
