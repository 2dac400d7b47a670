"""One channel of a convolution on a GPU: its tables, and what is computed of a chunk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dsfc.expr.tree import Field
from dsfc.kernel_ir.build import KernelBuilder, Tile
from dsfc.kernel_ir.ir import (
    Access,
    Along,
    Argument,
    Axis,
    Int,
    Position,
    Storage,
    Symbol,
    ceil_div,
    minus,
    plus,
    times,
)
from dsfc.kernels.operands import NAMES
from dsfc.kernels.planes import Planes, argument, dot, load, store, zeros
from dsfc.plan.scan_ir import Factor, RoleScan, Scan, ScanDirection

ROWS, TOKENS, KEYS, LATER = Axis("b", "BT"), Axis("s", "T"), Axis("n", "N"), Axis("t", "T")
"""Rows of the batch, tokens of a chunk that give, the state, tokens of a chunk that get."""

_T = Symbol("T")
_END = plus(times(2, _T), 1)


@dataclass(frozen=True)
class Entry:
    """How a chunk reads the state that enters it.

    Attributes:
        steps: tokens from the state through each one; 0 for those in front of it.
        ahead: λ^steps, over tokens and keys.
        count: steps of the last token.
        whole: λ^count, over keys.
    """

    steps: Tile
    ahead: Planes
    count: Tile
    whole: Planes


class ToeplitzChannel:
    """The channel and the rows of the batch of a program; declares what both directions read.

    Args:
        k: builder of the kernel.
        scan: a convolution.
        has_complex_values: whether values are complex, and outputs with them.
    """

    def __init__(self, k: KernelBuilder, scan: Scan, has_complex_values: bool) -> None:
        self._k = k
        self.is_complex, self.is_wide = scan.field is Field.COMPLEX, has_complex_values
        groups, batch, channels, self.chunks, self._pad = (
            k.dynamic(size) for size in ("G", "B", "C", "CHUNKS", "PAD")
        )
        rows, keys, tokens = (k.static(size) for size in ("BT", "N", "T"))
        parts = ceil_div(batch, rows)
        self._group, self._part = k.grid("group", groups), k.grid("part", parts)
        self._channel = k.grid("channel", channels)
        self._row = Along(ROWS, times(self._part, rows), batch)
        k.order(TOKENS, LATER, KEYS, ROWS)
        self._sum_sizes = (groups, parts, channels, keys)
        self._state_sizes = (groups, channels, keys, batch)
        self._value_sizes = (groups, channels, batch, self.chunks, tokens)
        self._arguments: dict[str, Argument] = {}
        constants = (groups, channels, keys)
        for name in "qk":
            self._declare(name, constants)
        for name in ("size", "turn", "turn_rest") if self.is_complex else ("size",):
            self._arguments[name] = k.argument(name, constants, storage=Storage.WIDE)
        self._ramp = k.argument("ramp", (_END,), storage=Storage.WIDE)
        self.declare_values("v")
        self.declare_state("S")
        at = (self._group, self._channel, k.all(KEYS))
        self._read, self._key = (load(k, self._arguments[name], *at) for name in "qk")
        logs = (n for n in ("size", "turn", "turn_rest") if n in self._arguments)
        self._log = [k.load(self._arguments[name], *at) for name in logs]

    # --- powers -----------------------------------------------------------------------------------

    def every(self) -> Entry:
        """Returns how a chunk reads the state that leaves the one before."""
        return self._entry(0)

    def first(self) -> Entry:
        """Returns how the first chunk reads the state of the caller, behind its padding."""
        return self._entry(self._pad)

    def whole_of_first(self) -> Planes:
        """Returns λ^count of the first chunk alone."""
        return self._power(self._count(self._pad)).named("whole")

    def rest(self, entry: Entry) -> Planes:
        """Returns λ^(T-1-s), from after a token to the end of a chunk."""
        return self._power(entry.count - entry.steps).named("rest")

    def matrix(self, every: Entry, *, back: bool = False) -> Planes:
        """Returns the Toeplitz matrix: K_(t-s) at (s, t), or K_(s-t) to go back, 0 elsewhere."""
        axis, by = (TOKENS, LATER) if back else (LATER, TOKENS)
        k, weight, is_real = self._k, self._read * self._key, not self.is_wide
        own = weight.map(lambda x: k.sum(x, KEYS))
        own = Planes(own.real) if is_real else own
        further = dot(weight, every.ahead, KEYS, real=is_real)
        further = further.map(lambda x: k.rename(x, TOKENS, axis))
        is_own = k.equal(k.index(by), k.index(axis))
        tiles = (
            k.where(is_own, x, k.shift(y, axis, by, 1))
            for x, y in zip(own.tiles, further.tiles, strict=True)
        )
        return Planes(*tiles).named("toeplitz")

    def _entry(self, pad: Int) -> Entry:
        k = self._k
        steps = k.load(self._ramp, Along(TOKENS, minus(plus(_T, 1), pad), _END))
        count = self._count(pad)
        ahead, whole = self._power(steps).named("ahead"), self._power(count).named("whole")
        return Entry(steps, ahead, count, whole)

    def _count(self, pad: Int) -> Tile:
        return self._k.load(self._ramp, minus(times(2, _T), pad))

    def _power(self, steps: Tile) -> Planes:
        k = self._k
        size = k.map("exp", steps * self._log[0], free=True)
        if not self.is_complex:
            return Planes(size)
        _, turn, turn_rest = self._log
        # The first part of the angle is exact; the second is small, and its cube is nothing.
        angle, more = steps * turn, steps * turn_rest
        cosine, sine, near = k.map("cos", angle), k.map("sin", angle), 1 - more * more * 0.5
        return Planes(size * (cosine * near - sine * more), size * (sine * near + cosine * more))

    # --- a chunk ----------------------------------------------------------------------------------

    def advance(self, whole: Planes, rest: Planes, value: Planes, state: Planes) -> Planes:
        """Returns the state that leaves a chunk."""
        writes = dot(rest, value, TOKENS).named("writes")
        return whole * state + self._key * writes

    def read(self, entry: Entry, state: Planes) -> Planes:
        """Returns the outputs of a chunk that are of the state before it."""
        looked = (self._read * state).named("looked")
        return dot(self._renamed(entry.ahead), looked, KEYS, real=not self.is_wide)

    def inner(self, matrix: Planes, drive: Planes) -> Planes:
        """Returns the product of a chunk with the Toeplitz matrix."""
        return dot(matrix, drive, TOKENS, real=not self.is_wide)

    # --- gradients --------------------------------------------------------------------------------

    def zeros(self, constant: Mapping[Factor, RoleScan]) -> dict[str, Planes]:
        """Returns sums of nothing: of the gradients of constants, of log λ, and of pairs."""
        names = (*(f"d{NAMES[factor]}" for factor in constant), "dg")
        sums = {name: zeros(self._k, (KEYS,), self.is_complex) for name in names}
        return sums | {"pairs": zeros(self._k, (TOKENS, LATER), self.is_wide)}

    def value_gradient(self, matrix: Planes, rest: Planes, bar: Planes, future: Planes) -> Planes:
        """Returns the gradients of the values of a chunk, from inside and from behind it."""
        looked = (self._key * future).named("looked")
        outer = dot(self._renamed(rest), looked, KEYS, real=not self.is_wide)
        return (self.inner(matrix, bar) + outer).named("dv")

    def more(
        self,
        entry: Entry,
        rest: Planes,
        constant: Mapping[Factor, RoleScan],
        terms: Mapping[str, Planes],
    ) -> dict[str, Planes]:
        """Returns the sums with a chunk, and the gradient of the state that enters it.

        Args:
            entry: how it reads that state.
            rest: powers to its end.
            constant: role scans whose results are the same at every token, by these results.
            terms: its `value` and `bar`, the `state` that enters it, the sums so far, and the
                gradient of the state that leaves it, `dS`.
        """
        value, bar, state, future = (terms[n] for n in ("value", "bar", "state", "dS"))
        writes = dot(rest, value, TOKENS).named("writes")
        reads = dot(entry.ahead, bar, TOKENS).named("reads")
        sums = {}
        for factor, s in constant.items():
            is_ahead = s.direction is ScanDirection.FORWARD
            passed = state * reads if is_ahead else future * writes
            sums[f"d{NAMES[factor]}"] = terms[f"d{NAMES[factor]}"] + self._of_rows(passed)
        # Powers times their exponents: these are factors of the tokens instead.
        far = dot(entry.ahead, bar.map(lambda x: x * entry.steps), TOKENS)
        through = self._read * far + future * entry.whole.map(lambda x: x * entry.count)
        near = dot(rest, value.map(lambda x: x * (entry.count - entry.steps)), TOKENS)
        sums["dg"] = terms["dg"] + self._of_rows(state * through + future * (self._key * near))
        sums["pairs"] = terms["pairs"] + dot(value, self._renamed(bar), ROWS)
        return sums | {"dS": entry.whole * future + self._read * reads}

    def totals(
        self, every: Entry, constant: Mapping[Factor, RoleScan], sums: Mapping[str, Planes]
    ) -> dict[str, Planes]:
        """Returns the gradients of what is constant: from outside of chunks, and from inside."""
        k, pairs = self._k, sums["pairs"]
        is_own = k.equal(k.index(TOKENS), k.index(LATER))
        own = pairs.map(lambda x: k.sum(k.where(is_own, x, 0.0), TOKENS, LATER))
        further = pairs.map(lambda x: k.sum(k.shift(x, LATER, TOKENS, 1, back=True), TOKENS))
        ahead, steps = self._renamed(every.ahead), k.rename(every.steps, TOKENS, LATER)
        agreed = own + dot(further, ahead, LATER)
        slope = dot(further.map(lambda x: x * steps), ahead, LATER)
        inner = {
            NAMES[n]: (self._read if s.key is Factor.READ else self._key) * agreed
            for n, s in constant.items()
        }
        inner["g"] = self._read * self._key * slope
        return {f"d{name}": x + sums[f"d{name}"] for name, x in inner.items()}

    def _of_rows(self, x: Planes) -> Planes:
        return x.map(lambda tile: self._k.sum(tile, ROWS))

    def _renamed(self, x: Planes) -> Planes:
        return x.map(lambda tile: self._k.rename(tile, TOKENS, LATER))

    # --- memory -----------------------------------------------------------------------------------

    def declare_values(self, name: str, access: Access = Access.READ) -> None:
        """Declares what has values' shape; the parts of complex ones lie apart."""
        sizes, storage = self._value_sizes, Storage.WIDE if self.is_wide else Storage.GIVEN
        shape = (2, *sizes) if self.is_wide else sizes
        self._arguments[name] = self._k.argument(name, shape, access, storage)

    def declare_state(self, name: str, access: Access = Access.READ) -> None:
        """Declares what has the state's shape."""
        self._declare(name, self._state_sizes, access)

    def declare_sum(self, name: str) -> None:
        """Declares the gradient of a constant, one of each part of the batch."""
        self._declare(name, self._sum_sizes, Access.WRITE)

    def values(self, name: str, chunk: Int) -> Planes:
        """Returns the values of a chunk."""
        at = self._values_at(chunk, TOKENS)
        tiles = (self._k.load(self._arguments[name], *plane, *at) for plane in self._value_planes)
        return Planes(*tiles).named(name)

    def store_values(self, name: str, chunk: Int, value: Planes) -> None:
        """Writes the values of a chunk."""
        at = self._values_at(chunk, LATER)
        for plane, tile in zip(self._value_planes, value.tiles, strict=True):
            self._k.store(self._arguments[name], *plane, *at, value=tile)

    def state(self, name: str) -> Planes:
        """Returns a state of the caller."""
        return load(self._k, self._arguments[name], *self._state_at)

    def store_state(self, name: str, state: Planes) -> None:
        """Writes a state."""
        store(self._k, self._arguments[name], *self._state_at, value=state)

    def store_sum(self, name: str, total: Planes) -> None:
        """Writes the gradient of a constant."""
        at = (self._group, self._part, self._channel, self._k.all(KEYS))
        store(self._k, self._arguments[name], *at, value=total)

    def _declare(self, name: str, shape: tuple[Int, ...], access: Access = Access.READ) -> None:
        """Declares what has the field of the state, and its precision."""
        self._arguments[name] = argument(
            self._k, name, shape, self.is_complex, access, Storage.WIDE
        )

    @property
    def _value_planes(self) -> tuple[tuple[int, ...], ...]:
        return tuple((plane,) for plane in range(2)) if self.is_wide else ((),)

    def _values_at(self, chunk: Int, axis: Axis) -> tuple[Position, ...]:
        return self._group, self._channel, self._row, chunk, self._k.all(axis)

    @property
    def _state_at(self) -> tuple[Position, ...]:
        return self._group, self._channel, self._k.all(KEYS), self._row
