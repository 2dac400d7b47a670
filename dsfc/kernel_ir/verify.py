"""Checks a kernel: what printers and the interpreter take for granted.

Every name is bound once and before it is read, a loop's values stay inside, operands fit their
operations, positions fit their arguments. Programs of a grid run at once: each index of the grid
must have a part in where a program writes its results, or two would write to one place. Of an
exponential that is not free, the argument is proved to be ≤ 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from dsfc.kernel_ir.ir import (
    Access,
    Along,
    Argument,
    Axis,
    Between,
    Carry,
    Compare,
    Dot,
    Index,
    Int,
    Integer,
    Kernel,
    Kind,
    Let,
    Load,
    Loop,
    Operation,
    Position,
    Rename,
    Shift,
    Statement,
    Store,
    ToMiddle,
    symbols,
)
from dsfc.kernel_ir.ranges import unproved_exponents
from dsfc.kernel_ir.types import TileType, type_of
from dsfc.kernel_ir.uses import operands

OPERATORS = frozenset(("+", "-", "*", "//", "<<", "min", "max"))
"""Operators of integers."""


class InvalidKernel(Exception):
    """A kernel that means nothing.

    Attributes:
        problems: all that is wrong, a line each, in the order of the kernel.
    """

    def __init__(self, name: str, problems: tuple[str, ...]) -> None:
        super().__init__("\n".join((f"kernel {name}:", *problems)))
        self.problems = problems


def verify(kernel: Kernel) -> Kernel:
    """Returns the kernel itself.

    Raises:
        InvalidKernel: something is wrong; the error has all of that.
    """
    problems = tuple(dict.fromkeys(_Check(kernel).problems()))
    if not problems:
        names = unproved_exponents(kernel)
        problems = tuple(f"value {n}: exp of what may be positive, and is not free" for n in names)
    if problems:
        raise InvalidKernel(kernel.name, problems)
    return kernel


@dataclass
class _Scope:
    """What a statement may read.

    Attributes:
        types: of values by name; None of a value that has none, as an operation is wrong.
        integers: sizes, indices of the grid and counters of loops.
    """

    types: dict[str, TileType | None] = field(default_factory=dict)
    integers: set[str] = field(default_factory=set)

    def inner(self) -> _Scope:
        """Returns the scope of a loop's body."""
        return _Scope(dict(self.types), set(self.integers))


class _Check:
    """The check of one kernel; every method yields what is wrong."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._arguments = {a.name: a for a in kernel.arguments}
        self._bound: set[str] = set()
        self._axes: dict[str, Axis] = {}
        self._stored: set[str] = set()
        self._shared = [g.index for g in kernel.grid if g.count != 1]

    def problems(self) -> Iterator[str]:
        """Yields all that is wrong."""
        kernel, scope = self._kernel, _Scope()
        yield from self._name(kernel.name)
        for name in (*kernel.static, *kernel.dynamic):
            yield from self._bind(name)
            scope.integers.add(name)
        for a in kernel.arguments:
            yield from self._bind(a.name)
            for size in a.shape:
                yield from self._integer(f"argument {a.name}", size, scope)
        sizes = scope.inner()
        for g in kernel.grid:
            yield from self._bind(g.index)
            yield from self._integer(f"index {g.index}", g.count, sizes)
            scope.integers.add(g.index)
        for axis in kernel.order:
            yield from self._axis("order", axis)
        yield from self._body(kernel.body, scope)
        for a in kernel.arguments:
            if a.access is Access.WRITE and a.name not in self._stored:
                yield f"argument {a.name}: nothing is stored to a result"

    # --- statements -------------------------------------------------------------------------------

    def _body(self, body: tuple[Statement, ...], scope: _Scope) -> Iterator[str]:
        for s in body:
            match s:
                case Let():
                    yield from self._let(s, scope)
                case Store():
                    yield from self._store(s, scope)
                case Loop():
                    yield from self._loop(s, scope)

    def _let(self, let: Let, scope: _Scope) -> Iterator[str]:
        yield from self._bind(let.name)
        here = f"value {let.name}"
        yield from self._integers_of(here, let.operation, scope)
        for axis in _axes(let.operation):
            yield from self._axis(here, axis)
        if isinstance(let.operation, Load):
            yield from self._positions(here, let.operation.argument, let.operation.at, scope)
            yield from self._access(here, let.operation.argument, Access.WRITE, "loads a result")
        scope.types[let.name] = None
        unknown = [x for x in operands(let.operation) if x not in scope.types]
        for x in unknown:
            yield f"{here}: nothing bound {x} before"
        known = {n: t for n, t in scope.types.items() if t is not None}
        if all(x in known for x in operands(let.operation)):
            try:
                scope.types[let.name] = type_of(let.operation, known)
            except TypeError as error:
                yield f"{here}: {error}"

    def _store(self, store: Store, scope: _Scope) -> Iterator[str]:
        here = f"store to {store.argument}"
        self._stored.add(store.argument)
        yield from self._positions(here, store.argument, store.at, scope)
        yield from self._access(here, store.argument, Access.READ, "stores to what is read")
        axes = [p.axis for p in store.at if isinstance(p, Along)]
        if len(set(axes)) < len(axes):
            yield f"{here}: one axis at two positions"
        if store.value not in scope.types:
            yield f"{here}: nothing bound {store.value} before"
        stored = scope.types.get(store.value)
        if stored is not None:
            if stored.kind is not Kind.REAL:
                yield f"{here}: {store.value} has {stored.kind.value} entries"
            for axis in stored.axes:
                if axis not in axes:
                    yield f"{here}: no position along {axis.name} of {store.value}"
        argument = self._arguments.get(store.argument)
        if argument is not None and argument.access is Access.WRITE:
            starts = (p.start if isinstance(p, Along) else p for p in store.at)
            used = {name for start in starts for name in symbols(start)}
            for index in self._shared:
                if index not in used:
                    yield f"{here}: programs of all {index} write to one place"

    def _loop(self, loop: Loop, scope: _Scope) -> Iterator[str]:
        here = f"loop {loop.counter}"
        yield from self._bind(loop.counter)
        yield from self._integer(here, loop.count, scope)
        inner = scope.inner()
        inner.integers.add(loop.counter)
        for c in loop.carries:
            yield from self._bind(c.name)
            if c.first not in scope.types:
                yield f"{here}: nothing bound {c.first} before"
            inner.types[c.name] = scope.types.get(c.first)
        yield from self._body(loop.body, inner)
        for c in loop.carries:
            yield from self._bind(c.last)
            yield from self._carry(here, c, inner)
            scope.types[c.last] = inner.types[c.name]

    def _carry(self, here: str, carry: Carry, inner: _Scope) -> Iterator[str]:
        if carry.next not in inner.types:
            yield f"{here}: nothing bound {carry.next} inside"
        first, following = inner.types[carry.name], inner.types.get(carry.next)
        if first is None or following is None:
            return
        if set(first.axes) != set(following.axes) or first.kind is not following.kind:
            yield f"{here}: {carry.name} goes on with other axes or another kind as {carry.next}"

    # --- names, axes, integers, positions ---------------------------------------------------------

    def _name(self, name: str) -> Iterator[str]:
        if not (name.isidentifier() and name.isascii()):
            yield f"{name!r} is no name"

    def _bind(self, name: str) -> Iterator[str]:
        yield from self._name(name)
        if name in self._bound:
            yield f"{name} is bound twice"
        self._bound.add(name)

    def _axis(self, here: str, axis: Axis) -> Iterator[str]:
        if isinstance(axis.size, str) and axis.size not in self._kernel.static:
            yield f"{here}: {axis.size}, the size of axis {axis.name}, is no static size"
        yield from self._name(axis.name)
        if self._axes.setdefault(axis.name, axis) != axis:
            yield f"{here}: two axes are called {axis.name}"

    def _integers_of(self, here: str, operation: Operation, scope: _Scope) -> Iterator[str]:
        if isinstance(operation, Index):
            yield from self._integer(here, operation.start, scope)
        if isinstance(operation, ToMiddle):
            yield from self._integer(here, operation.half, scope)
        if isinstance(operation, Dot):
            for part in (operation.out, operation.left_part, operation.right_part):
                if part is not None and part.block is not None:
                    yield from self._integer(here, part.block, scope)
        if isinstance(operation, Compare) and not isinstance(operation.right, str):
            yield from self._integer(here, operation.right, scope)

    def _integer(self, here: str, e: Int, scope: _Scope) -> Iterator[str]:
        for name in symbols(e):
            if name not in scope.integers:
                yield f"{here}: no integer is called {name}"
        for operator in _operators(e):
            if operator not in OPERATORS:
                yield f"{here}: no operator {operator!r} of integers"

    def _positions(
        self, here: str, name: str, at: tuple[Position, ...], scope: _Scope
    ) -> Iterator[str]:
        argument: Argument | None = self._arguments.get(name)
        if argument is None:
            yield f"{here}: no argument is called {name}"
        elif len(argument.shape) != len(at):
            yield f"{here}: {len(at)} positions in {len(argument.shape)} dimensions"
        for p in at:
            if isinstance(p, Along):
                yield from self._axis(here, p.axis)
            for e in _integers(p):
                yield from self._integer(here, e, scope)

    def _access(self, here: str, name: str, forbidden: Access, what: str) -> Iterator[str]:
        argument = self._arguments.get(name)
        if argument is not None and argument.access is forbidden:
            yield f"{here}: {what}, {name}"


def _integers(p: Position) -> tuple[Int, ...]:
    return (p.start, p.bound) if isinstance(p, Along) else (p,)


def _operators(e: Int) -> Iterator[str]:
    if isinstance(e, Integer):
        yield e.operator
        yield from _operators(e.left)
        yield from _operators(e.right)


def _axes(operation: Operation) -> Iterable[Axis]:
    """The axes of an operation's tile that its operands may lack."""
    match operation:
        case Index():
            return (operation.axis,)
        case Rename():
            return (operation.to,)
        case Between():
            return operation.to, operation.since
        case Shift():
            return (operation.by,)
        case _:
            return ()
