"""Builds kernels from Python: tiles with operators, loops as `with` blocks.

    k = KernelBuilder("forward", "y_i = Σ_n q_i S_i")
    L, N = k.dynamic("L"), k.static("N")
    n = Axis("n", "N")
    q = k.argument("q", (L, N))
    with k.loop("i", L, S=start) as loop:
        q_i = k.load(q, loop.counter, k.all(n))
        loop.next(S=loop["S"] * q_i)
    k.store(...)
    kernel = k.kernel()

A value that is built twice in one scope is one value. `named` gives a value the name that the
printed kernel shows; the others are called after their operation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from dsfc.expr.interval import REALS, Interval
from dsfc.kernel_ir.ir import (
    Access,
    Along,
    Argument,
    Axis,
    Between,
    Carry,
    Compare,
    Const,
    Cumulate,
    Dot,
    Grid,
    Index,
    Int,
    InverseUnit,
    Kernel,
    Let,
    Load,
    Loop,
    Map,
    Operation,
    Position,
    Reduce,
    Rename,
    Shift,
    Statement,
    Storage,
    Store,
    Symbol,
    ToMiddle,
    Triangle,
)
from dsfc.kernel_ir.types import TileType, type_of
from dsfc.kernel_ir.verify import verify


@dataclass(frozen=True, eq=False)
class Tile:
    """A value of a kernel under construction.

    Attributes:
        key: unique in the builder.
        type: axes and kind.
        builder: what it is a value of.
    """

    key: str
    type: TileType
    builder: KernelBuilder

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The axes of the tile."""
        return self.type.axes

    def __add__(self, other: Tile | float) -> Tile:
        return self.builder.map("add", self, other)

    def __radd__(self, other: float) -> Tile:
        return self.builder.map("add", other, self)

    def __sub__(self, other: Tile | float) -> Tile:
        return self.builder.map("sub", self, other)

    def __rsub__(self, other: float) -> Tile:
        return self.builder.map("sub", other, self)

    def __mul__(self, other: Tile | float) -> Tile:
        return self.builder.map("mul", self, other)

    def __rmul__(self, other: float) -> Tile:
        return self.builder.map("mul", other, self)

    def __truediv__(self, other: Tile | float) -> Tile:
        return self.builder.map("div", self, other)

    def __neg__(self) -> Tile:
        return self.builder.map("neg", self)


class LoopScope:
    """A loop under construction: its counter, and the tiles that it carries."""

    def __init__(
        self, counter: Symbol, inside: Mapping[str, Tile], after: Mapping[str, Tile]
    ) -> None:
        self.counter = counter
        self._inside = dict(inside)
        self._after = dict(after)
        self.following: dict[str, Tile] = {}

    def __getitem__(self, name: str) -> Tile:
        """Returns a carried tile as it is at the start of an iteration."""
        return self._inside[name]

    def next(self, **tiles: Tile) -> None:
        """Says what the next iteration gets."""
        self.following |= tiles

    def last(self, name: str) -> Tile:
        """Returns a carried tile as it is after the loop."""
        return self._after[name]


class KernelBuilder:
    """Collects the statements of one kernel."""

    def __init__(self, name: str, doc: str) -> None:
        self._name, self._doc = name, doc
        self._arguments: list[Argument] = []
        self._static: list[str] = []
        self._dynamic: list[str] = []
        self._grid: list[Grid] = []
        self._order: tuple[Axis, ...] = ()
        self._scopes: list[list[Statement]] = [[]]
        self._known: list[dict[Operation, Tile]] = [{}]
        self._names: dict[str, str] = {}
        self._types: dict[str, TileType] = {}
        self._taken: set[str] = set()
        self._count = 0

    # --- what the kernel is started with ----------------------------------------------------------

    def static(self, name: str) -> Symbol:
        """Declares a static size."""
        if name not in self._static:
            self._static.append(name)
        return Symbol(name)

    def dynamic(self, name: str) -> Symbol:
        """Declares a dynamic size."""
        if name not in self._dynamic:
            self._dynamic.append(name)
        return Symbol(name)

    def grid(self, index: str, count: Int) -> Symbol:
        """Declares a dimension of the grid and returns its index."""
        self._grid.append(Grid(index, count))
        return Symbol(index)

    def order(self, *axes: Axis) -> None:
        """Says how tiles should lie in memory: of their axes, the last one densest."""
        self._order = axes

    def argument(
        self,
        name: str,
        shape: tuple[Int, ...],
        access: Access = Access.READ,
        storage: Storage = Storage.GIVEN,
        promise: Interval = REALS,
    ) -> Argument:
        """Declares an argument."""
        argument = Argument(name, shape, access, storage, promise)
        self._arguments.append(argument)
        return argument

    def all(self, axis: Axis) -> Along:
        """Returns the position of a whole dimension along an axis of its size."""
        size = Symbol(axis.size) if isinstance(axis.size, str) else axis.size
        return Along(axis, 0, size)

    # --- values -----------------------------------------------------------------------------------

    def const(self, value: float) -> Tile:
        """Returns a number."""
        return self._let(Const(float(value)))

    def zeros(self, axis: Axis, other: Axis | None = None) -> Tile:
        """Returns zeros over one axis or two: what a loop adds to."""
        mask = self.equal(self.index(axis), 0 if other is None else self.index(other))
        return self.named("zeros", self.where(mask, 0.0, 0.0))

    def index(self, axis: Axis, start: Int = 0) -> Tile:
        """Returns start + 0, 1, 2, … along an axis."""
        return self._let(Index(axis, start))

    def less(self, left: Tile, right: Tile | Int, or_equal: bool = False) -> Tile:
        """Returns the mask left < right, or left ≤ right."""
        other = right.key if isinstance(right, Tile) else right
        return self._let(Compare("<=" if or_equal else "<", left.key, other))

    def equal(self, left: Tile, right: Tile | Int) -> Tile:
        """Returns the mask left = right."""
        other = right.key if isinstance(right, Tile) else right
        return self._let(Compare("==", left.key, other))

    def map(self, function: str, *operands: Tile | float, free: bool = False) -> Tile:
        """Returns a function of entries; numbers become tiles."""
        tiles = [x if isinstance(x, Tile) else self.const(x) for x in operands]
        return self._let(Map(function, tuple(x.key for x in tiles), free))

    def where(self, mask: Tile, value: Tile | float, other: Tile | float) -> Tile:
        """Returns the one value where the mask holds, the other elsewhere."""
        return self.map("where", mask, value, other)

    def rename(self, tile: Tile, axis: Axis, to: Axis) -> Tile:
        """Returns the tile with an axis under another name."""
        return tile if axis == to else self._let(Rename(tile.key, axis, to))

    def sum(self, tile: Tile, *axes: Axis) -> Tile:
        """Returns the sum over axes; of those that the tile lacks nothing is summed."""
        for axis in axes:
            if axis in tile.axes:
                tile = self._let(Reduce("sum", tile.key, axis))
        return tile

    def product(self, tile: Tile, axis: Axis) -> Tile:
        """Returns the product along an axis."""
        return self._let(Reduce("product", tile.key, axis))

    def max(self, tile: Tile, axis: Axis) -> Tile:
        """Returns the maximum along an axis."""
        return self._let(Reduce("max", tile.key, axis))

    def cumulate(
        self,
        function: str,
        tile: Tile,
        axis: Axis,
        *,
        reverse: bool = False,
        exclusive: bool = False,
        block: int | None = None,
    ) -> Tile:
        """Returns the sums or products of the entries so far."""
        return self._let(Cumulate(function, tile.key, axis, reverse, exclusive, block))

    def to_middle(
        self, tile: Tile, axis: Axis, half: Int, *, exclusive: bool = False, back: bool = False
    ) -> Tile:
        """Returns the sums of the entries between each place and the middle of its block."""
        return self._let(ToMiddle(tile.key, axis, half, exclusive, back))

    def between(
        self, tile: Tile, axis: Axis, to: Axis, since: Axis, exclusive: bool = False
    ) -> Tile:
        """Returns the products over what lies between two entries."""
        return self._let(Between(tile.key, axis, to, since, exclusive))

    def shift(
        self, tile: Tile, axis: Axis, by: Axis, offset: int = 0, *, back: bool = False
    ) -> Tile:
        """Returns the entries further along an axis, by an offset and the place along another."""
        return self._let(Shift(tile.key, axis, by, offset, back))

    def dot(
        self,
        left: Tile,
        right: Tile,
        over: Axis,
        *,
        out: Triangle | None = None,
        left_part: Triangle | None = None,
        right_part: Triangle | None = None,
        exact: bool = False,
    ) -> Tile:
        """Returns Σ over an axis of left · right."""
        return self._let(Dot(left.key, right.key, over, out, left_part, right_part, exact))

    def inverse_unit(self, tile: Tile, row: Axis, column: Axis) -> Tile:
        """Returns (1 + tile)⁻¹ of a strictly lower triangular tile."""
        return self._let(InverseUnit(tile.key, row, column))

    def load(self, argument: Argument, *at: Position) -> Tile:
        """Returns entries of an argument; every load is a value of its own."""
        return self._bind(Load(argument.name, at), argument.name)

    def named(self, name: str, tile: Tile) -> Tile:
        """Gives a value the name under which it is printed, if it has none yet."""
        self._names.setdefault(tile.key, name)
        return tile

    # --- statements -------------------------------------------------------------------------------

    def store(self, argument: Argument, *at: Position, value: Tile) -> None:
        """Writes a tile to an argument."""
        self._scopes[-1].append(Store(argument.name, at, value.key))

    @contextmanager
    def loop(
        self, counter: str, count: Int, *, reverse: bool = False, **first: Tile
    ) -> Iterator[LoopScope]:
        """Opens a loop that carries tiles; what carries on is said by `LoopScope.next`.

        Raises:
            ValueError: a carried tile does not go on, or not with the same axes and kind.
        """
        inside = {n: self._value(x.type, n) for n, x in first.items()}
        after = {n: self._value(x.type, f"{n}_last") for n, x in first.items()}
        self._count += 1
        symbol = Symbol(f"{counter}.{self._count}")
        self._names[symbol.name] = counter
        scope = LoopScope(symbol, inside, after)
        self._scopes.append([])
        self._known.append({})
        yield scope
        self._known.pop()
        body = tuple(self._scopes.pop())
        if set(scope.following) != set(first):
            raise ValueError(
                f"loop {counter} carries {set(first)}, goes on with {set(scope.following)}"
            )
        for n, x in first.items():
            following = scope.following[n]
            if set(following.axes) != set(x.axes) or following.type.kind is not x.type.kind:
                raise ValueError(f"loop {counter} carries {n} as {x.type}, then {following.type}")
        carries = tuple(
            Carry(inside[n].key, x.key, scope.following[n].key, after[n].key)
            for n, x in first.items()
        )
        self._scopes[-1].append(Loop(symbol.name, count, carries, body, reverse))

    def kernel(self) -> Kernel:
        """Returns the kernel, every value under its final name.

        Raises:
            ValueError: two sizes, arguments or indices have one name.
            InvalidKernel: the kernel means nothing; `verify` says what there is to check.
        """
        outside = [*self._static, *self._dynamic]
        outside += [x.name for x in self._arguments] + [g.index for g in self._grid]
        self._taken = set(outside)
        if len(self._taken) < len(outside):
            raise ValueError(f"two sizes, arguments or indices have one name: {outside}")
        final: dict[str, str] = {}
        body = tuple(self._final(s, final) for s in self._scopes[0])
        kernel = Kernel(
            self._name,
            self._doc,
            tuple(self._arguments),
            tuple(self._static),
            tuple(self._dynamic),
            tuple(self._grid),
            self._order,
            body,
        )
        return verify(kernel)

    # --- inside -----------------------------------------------------------------------------------

    def _let(self, operation: Operation) -> Tile:
        for known in reversed(self._known):
            if operation in known:
                return known[operation]
        tile = self._bind(operation)
        self._known[-1][operation] = tile
        return tile

    def _bind(self, operation: Operation, name: str = "") -> Tile:
        tile = self._value(type_of(operation, self._types), name)
        self._scopes[-1].append(Let(tile.key, operation))
        return tile

    def _value(self, tile_type: TileType, name: str = "") -> Tile:
        self._count += 1
        key = f"{name or 'x'}.{self._count}"
        self._types[key] = tile_type
        if name:
            self._names[key] = name
        return Tile(key, tile_type, self)

    def _final(self, s: Statement, final: dict[str, str]) -> Statement:
        match s:
            case Let():
                operation = _renamed(s.operation, final)
                return Let(self._called(s.name, final, s.operation), operation)
            case Store():
                at = tuple(_position(p, final) for p in s.at)
                return Store(s.argument, at, final[s.value])
            case Loop():
                first = [final[c.first] for c in s.carries]
                count = _integer(s.count, final)
                counter = self._called(s.counter, final)
                names = [self._called(c.name, final) for c in s.carries]
                body = tuple(self._final(x, final) for x in s.body)
                rows = zip(s.carries, names, first, strict=True)
                carries = tuple(
                    Carry(n, f, final[c.next], self._called(c.last, final)) for c, n, f in rows
                )
                return Loop(counter, count, carries, body, s.reverse)

    def _called(self, key: str, final: dict[str, str], operation: Operation | None = None) -> str:
        stem = self._names.get(key) or _stem(operation)
        name, count = stem, 1
        while name in self._taken:
            count += 1
            name = f"{stem}_{count}"
        self._taken.add(name)
        final[key] = name
        return name


def _stem(operation: Operation | None) -> str:
    """The name of a value that has none."""
    match operation:
        case Map():
            return {"mul": "product", "add": "sum", "sub": "difference"}.get(
                operation.function, operation.function
            )
        case Reduce() | Cumulate():
            return operation.function
        case None:
            return "x"
        case _:
            return type(operation).__name__.lower()


def _renamed(operation: Operation, final: Mapping[str, str]) -> Operation:
    changes: dict[str, Any] = {}
    match operation:
        case Map():
            changes["operands"] = tuple(final[x] for x in operation.operands)
        case ToMiddle():
            changes["operand"] = final[operation.operand]
            changes["half"] = _integer(operation.half, final)
        case Rename() | Reduce() | Cumulate() | Between() | Shift() | InverseUnit():
            changes["operand"] = final[operation.operand]
        case Dot():
            changes |= {"left": final[operation.left], "right": final[operation.right]}
            parts = ("out", "left_part", "right_part")
            changes |= {name: _triangle(getattr(operation, name), final) for name in parts}
        case Compare(right=right):
            changes["left"] = final[operation.left]
            changes["right"] = final[right] if isinstance(right, str) else _integer(right, final)
        case Index():
            changes["start"] = _integer(operation.start, final)
        case Load():
            changes["at"] = tuple(_position(p, final) for p in operation.at)
        case _:
            pass
    return replace(operation, **changes) if changes else operation


def _triangle(part: Triangle | None, final: Mapping[str, str]) -> Triangle | None:
    if part is None or part.block is None:
        return part
    return replace(part, block=_integer(part.block, final))


def _position(p: Position, final: Mapping[str, str]) -> Position:
    if isinstance(p, Along):
        return Along(p.axis, _integer(p.start, final), _integer(p.bound, final))
    return _integer(p, final)


def _integer(e: Int, final: Mapping[str, str]) -> Int:
    match e:
        case Symbol(name=name):
            return Symbol(final.get(name, name))
        case int():
            return e
        case _:
            return replace(e, left=_integer(e.left, final), right=_integer(e.right, final))
