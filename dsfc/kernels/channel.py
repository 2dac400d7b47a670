"""One channel of a convolution: its tables, and what is computed of its tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

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
    minus,
    plus,
    times,
)
from dsfc.kernels.operands import NAMES
from dsfc.kernels.planes import Planes, dot, load, plane_names, store, zeros
from dsfc.plan.scan_ir import Factor, RoleScan, ScanDirection

_T = Symbol("T")
_R = Symbol("R")
_END = plus(_T, 1)


@dataclass(frozen=True)
class Layout:
    """What the channels of a kernel have in common.

    Attributes:
        k: builder of the kernel.
        is_wide: whether values are complex.
        back: whether it computes the gradient.
        batch: axis of the rows of the batch that a program has.
        rows: axis of chunks and rows of the batch.
        tokens: axis of the tokens of a chunk that give.
        keys: axis of the state.
        later: axis of the tokens of a chunk that get.
        group, part: indices of the program.
        row: position of its rows of the batch.
        first_channel: the first of its channels.
        arguments: by name.
    """

    k: KernelBuilder
    is_wide: bool
    back: bool
    batch: Axis
    rows: Axis
    tokens: Axis
    keys: Axis
    later: Axis
    group: Int
    part: Int
    row: Along
    first_channel: Int
    arguments: dict[str, Argument] = field(default_factory=dict)


@dataclass(frozen=True)
class Stretch:
    """Powers of λ for the tokens that are computed at once; those behind them count as 0.

    Attributes:
        count: how many tokens.
        whole: λ^count, over keys.
        rest: λ^(count-1-s), from after a token to the end of the stretch: over (tokens, keys).
        look: what a state outside is read with at each token, over (keys, tokens): λ^(t+1) of the
            one before the stretch forwards, λ^(count-1-t) of the gradient behind it backwards.
    """

    count: Int
    whole: Planes
    rest: Planes
    look: Planes


@dataclass(frozen=True)
class Slopes:
    """Powers of λ that only gradients multiply.

    Attributes:
        ahead: λ^(s+1), from before the stretch through a token: over (tokens, keys).
        whole_slope, rest_slope, ahead_slope: powers of a stretch times their exponents.
    """

    ahead: Planes
    whole_slope: Planes
    rest_slope: Planes
    ahead_slope: Planes


class Channel:
    """One channel of a program.

    Args:
        of: the kernel.
        at: which channel of the program; an attribute too.
        constant: role scans whose results are the same at every token, by these results.
    """

    def __init__(
        self, of: Layout, at: Int, constant: Mapping[Factor, RoleScan] | None = None
    ) -> None:
        self._of, self._k, self.at = of, of.k, at
        self._constant = constant or {}
        self._channel = plus(of.first_channel, at)
        self._read, self._key = (self._fixed(name) for name in "qk")

    # --- what is computed -------------------------------------------------------------------------

    def writes(self, stretch: Stretch, value: Planes) -> Planes:
        """Returns Σ_s value_s λ^(count-1-s)."""
        return dot(value, stretch.rest, self._of.tokens).named("writes")

    def reads(self, slopes: Slopes, bar: Planes) -> Planes:
        """Returns Σ_s bar_s λ^(s+1)."""
        return dot(bar, slopes.ahead, self._of.tokens).named("reads")

    def advance(self, stretch: Stretch, state: Planes, writes: Planes) -> Planes:
        """Returns the state that leaves a stretch."""
        return stretch.whole * state + self._key * writes

    def retreat(self, stretch: Stretch, future: Planes, reads: Planes) -> Planes:
        """Returns the gradient of the state that enters a stretch."""
        return stretch.whole * future + self._read * reads

    def output(self, matrix: Planes, stretch: Stretch, value: Planes, state: Planes) -> Planes:
        """Returns the outputs of a stretch: of its values, and of the state before it."""
        return self._outputs(matrix, stretch, value, self._read * state).named("y")

    def value_gradient(
        self, matrix: Planes, stretch: Stretch, bar: Planes, future: Planes
    ) -> Planes:
        """Returns the gradients of the values of a stretch: the same, from behind it."""
        return self._outputs(matrix, stretch, bar, self._key * future).named("dv")

    def _outputs(self, matrix: Planes, stretch: Stretch, drive: Planes, looked: Planes) -> Planes:
        is_real = not self._of.is_wide
        inner = dot(drive, matrix, self._of.tokens, real=is_real)
        return inner + dot(looked.named("looked"), stretch.look, self._of.keys, real=is_real)

    def gradients(
        self,
        stretch: Stretch,
        slopes: Slopes,
        rows: Axis,
        terms: Mapping[str, Planes],
    ) -> dict[str, Planes]:
        """Returns what a stretch adds to the gradients of what is constant, and to pairs.

        Args:
            stretch: its tables.
            slopes: those of gradients.
            rows: axis of stretches.
            terms: of each row `value` and `bar`, its `writes` and `reads`, the `state` that enters
                it, and the gradient of what leaves it, `future`.
        """
        k = self._k
        value, bar, state, future = (terms[n] for n in ("value", "bar", "state", "future"))
        passed = {}
        for factor, s in self._constant.items():
            ahead = s.direction is ScanDirection.FORWARD
            name = f"d{NAMES[factor]}"
            passed[name] = state * terms["reads"] if ahead else future * terms["writes"]
        through = self._read * dot(bar, slopes.ahead_slope, self._of.tokens)
        through = through + future * slopes.whole_slope
        inside = self._key * dot(value, slopes.rest_slope, self._of.tokens)
        passed["dg"] = state * through + future * inside
        sums = {name: x.map(lambda tile: k.sum(tile, rows)) for name, x in passed.items()}
        later = bar.map(lambda tile: k.rename(tile, self._of.tokens, self._of.later))
        return sums | {"pairs": dot(value, later, rows)}

    def store_sums(self, sums: Mapping[str, Planes]) -> None:
        """Writes the gradients of what is constant: from outside of chunks, and from inside."""
        agreed = self._by_lag(sums["pairs"])
        powers = self._power("powers", Along(self._of.later, 0, _END))
        steps = self._k.load(self._of.arguments["steps"], Along(self._of.later, 0, _END))
        inner = dot(agreed, powers, self._of.later).named("agreed")
        slope = dot(agreed.map(lambda x: x * steps), powers, self._of.later)
        total = {f"d{NAMES[n]}": self._weight(s.key) * inner for n, s in self._constant.items()}
        total["dg"] = self._read * self._key * slope
        at = (self._of.group, self._of.part, self._channel, self._k.all(self._of.keys))
        for name, part in total.items():
            store(self._k, self._of.arguments[name], *at, value=sums[name] + part)

    def _weight(self, factor: Factor) -> Planes:
        return self._read if factor is Factor.READ else self._key

    # --- tables -----------------------------------------------------------------------------------

    def stretch(self, count: Int) -> Stretch:
        """Loads the tables of some tokens."""
        first = plus(minus(_T, count), 1)
        whole = minus(_T, count) if self._of.back else count
        return Stretch(
            count,
            self._power("look", whole).named("whole"),
            self._power("past", Along(self._of.tokens, first, _END)).named("rest"),
            self._power("look", Along(self._of.later, first if self._of.back else 1, _END)).named(
                "look"
            ),
        )

    def slopes(self, stretch: Stretch) -> Slopes:
        """Loads what gradients of some tokens multiply."""
        k, tokens = self._k, self._of.tokens
        ahead = self._power("powers", Along(tokens, 1, _END)).named("ahead")
        first = plus(minus(_T, stretch.count), 1)
        steps = k.load(self._of.arguments["steps"], Along(tokens, 1, _END))
        lags = k.load(self._of.arguments["lags"], Along(tokens, first, _END))
        count = k.load(self._of.arguments["steps"], stretch.count)
        return Slopes(
            ahead,
            stretch.whole.map(lambda x: x * count),
            stretch.rest.map(lambda x: x * lags),
            ahead.map(lambda x: x * steps),
        )

    def _fixed(self, name: str) -> Planes:
        place = (self._of.group, self._channel, self._k.all(self._of.keys))
        return load(self._k, self._of.arguments[name], *place)

    def _power(self, name: str, at: Position) -> Planes:
        """Powers of λ: λ^i at position i of `powers`, λ^(T-i) at that of `past`."""
        place = (self._of.group, self._channel, self._k.all(self._of.keys), at)
        return load(self._k, self._of.arguments[name], *place)

    def store_matrix(self, matrices: list[Argument]) -> None:
        """Writes K_(t-s) at (s, t), or K_(s-t) to go back, and 0 where no such lag is.

        Each row is the one before, moved by an entry: it is read from a longer row with zeros.
        """
        powers = self._power("look", Along(self._of.later, int(self._of.back), _END))
        is_real = not self._of.is_wide
        kernel = dot(self._read * self._key, powers, self._of.keys, real=is_real)
        for plane, (tile, matrix) in enumerate(zip(kernel.tiles, matrices, strict=True)):
            shape = (times(2, _T),)
            row = self._k.argument(f"row_{plane}", shape, Access.SCRATCH, Storage.WIDE)
            self._store_moved(tile, row, matrix)

    def _store_moved(self, kernel: Tile, row: Argument, matrix: Argument) -> None:
        k, t, twice = self._k, self._of.later, times(2, _T)
        starts = (0, _T) if self._of.back else (_T, 0)
        k.store(row, Along(t, starts[0], twice), value=kernel)
        k.store(row, Along(t, starts[1], twice), value=k.const(0.0))
        with k.loop("lag", _T) as loop:
            start = minus(minus(_T, int(self._of.back)), loop.counter)
            moved = k.load(row, Along(t, start, twice))
            k.store(matrix, self.at, loop.counter, k.all(t), value=moved)

    def matrix(self, matrices: list[Argument]) -> Planes:
        """Returns the Toeplitz matrix that was written."""
        entries = self._k.all(self._of.tokens), self._k.all(self._of.later)
        return Planes(*(self._k.load(a, self.at, *entries) for a in matrices))

    def _by_lag(self, pairs: Planes) -> Planes:
        """Returns Σ_s pairs at (s, s + l), of each lag l."""
        return Planes(*(self._diagonals(tile, plane) for plane, tile in enumerate(pairs.tiles)))

    def _diagonals(self, pairs: Tile, plane: int) -> Tile:
        k, t, twice = self._k, self._of.later, times(2, _T)
        rows = k.argument(f"pairs_{plane}", (_T, twice), Access.SCRATCH, Storage.WIDE)
        k.store(rows, k.all(self._of.tokens), Along(t, 0, twice), value=pairs)
        k.store(rows, k.all(self._of.tokens), Along(t, _T, twice), value=k.const(0.0))
        with k.loop("row", _T, sums=zeros(k, (t,)).real) as loop:
            row = k.load(rows, loop.counter, Along(t, loop.counter, twice))
            loop.next(sums=loop["sums"] + row)
        return loop.last("sums")

    # --- memory -----------------------------------------------------------------------------------

    def values(self, name: str, bound: Int) -> Planes:
        """Returns the first values of all rows of the batch."""
        at = self._at_values(self._of.tokens, bound)
        return load(self._k, self._of.arguments[name], *at)

    def store_values(self, name: str, bound: Int, value: Planes) -> None:
        """Writes the first values of all rows of the batch."""
        at = self._at_values(self._of.later, bound)
        store(self._k, self._of.arguments[name], *at, value=value)

    def _at_values(self, axis: Axis, bound: Int) -> tuple[Position, ...]:
        return self._of.group, self._of.row, Along(axis, 0, bound), self._channel

    def load_state(self, name: str) -> Planes:
        """Returns a state of the caller."""
        return load(self._k, self._of.arguments[name], *self._state_at)

    def store_state(self, name: str, state: Planes) -> None:
        """Writes a state."""
        store(self._k, self._of.arguments[name], *self._state_at, value=state)

    @property
    def _state_at(self) -> tuple[Position, ...]:
        return self._of.group, self._of.row, self._channel, self._k.all(self._of.keys)


class Rows:
    """Memory for a state of each row: all of them are one tile, those of a chunk another.

    Args:
        of: the kernel.
        name: of the states.
        is_complex: whether they are complex.
    """

    def __init__(self, of: Layout, name: str, is_complex: bool) -> None:
        self._of, self._k = of, of.k
        self._memory = [
            of.k.argument(f"rows_{plane}", (_R, Symbol("N")), Access.SCRATCH, Storage.WIDE)
            for plane in plane_names(name, is_complex)
        ]

    def store(self, states: Planes) -> None:
        """Writes those of all rows."""
        for a, tile in zip(self._memory, states.tiles, strict=True):
            self._k.store(a, self._k.all(self._of.rows), self._k.all(self._of.keys), value=tile)

    def load(self) -> Planes:
        """Returns those of all rows."""
        entries = self._k.all(self._of.rows), self._k.all(self._of.keys)
        return Planes(*(self._k.load(a, *entries) for a in self._memory))

    def store_chunk(self, chunk: Int, states: Planes) -> None:
        """Writes those of a chunk, one for each row of the batch."""
        for a, tile in zip(self._memory, states.tiles, strict=True):
            self._k.store(a, *self._at(chunk), value=tile)

    def load_chunk(self, chunk: Int) -> Planes:
        """Returns those of a chunk."""
        return Planes(*(self._k.load(a, *self._at(chunk)) for a in self._memory))

    def _at(self, chunk: Int) -> tuple[Position, ...]:
        batch = Along(self._of.batch, times(chunk, Symbol("BT")), _R)
        return batch, self._k.all(self._of.keys)


class Turned:
    """Memory for the values of some chunks, channel by channel.

    Channels lie one row further apart than they need: at a power of two, those that are written at
    once would be in each other's place in the cache.

    Args:
        of: the kernel.
        name: of the values.
        channels: how many channels.
    """

    def __init__(self, of: Layout, name: str, channels: Int) -> None:
        self._of, self._k = of, of.k
        shape = (channels, plus(_R, 1), _T)
        self._memory = [
            of.k.argument(f"turned_{plane}", shape, Access.SCRATCH, Storage.WIDE)
            for plane in plane_names(name, of.is_wide)
        ]

    @property
    def zeros(self) -> Planes:
        """Zeros for one channel."""
        return zeros(self._k, (self._of.rows, self._of.tokens), self._of.is_wide)

    def store(self, channel: Int, values: Planes) -> None:
        """Writes all values of a channel, whichever axis their tokens have."""
        tokens = self._of.tokens if self._of.tokens in values.real.axes else self._of.later
        for a, tile in zip(self._memory, values.tiles, strict=True):
            self._k.store(a, channel, self._all_rows, self._k.all(tokens), value=tile)

    def load(self, channel: Int) -> Planes:
        """Returns all values of a channel."""
        entries = self._all_rows, self._k.all(self._of.tokens)
        return Planes(*(self._k.load(a, channel, *entries) for a in self._memory))

    def store_row(self, channels: Position, row: Int, values: Planes) -> None:
        """Writes one row of all channels."""
        for a, tile in zip(self._memory, values.tiles, strict=True):
            self._k.store(a, channels, row, self._k.all(self._of.tokens), value=tile)

    def load_row(self, channels: Position, row: Int) -> Planes:
        """Returns one row of some channels."""
        entries = (channels, row, self._k.all(self._of.tokens))
        return Planes(*(self._k.load(a, *entries) for a in self._memory))

    @property
    def _all_rows(self) -> Along:
        return Along(self._of.rows, 0, _R)
