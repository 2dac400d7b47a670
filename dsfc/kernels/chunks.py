"""Chunks of tokens inside kernels: their tiles, what is computed of them, and gradients of that.

A token writes to the state and reads from it,

    h_i = λ_i h_{i-1} + Σ_w key_w,i ⊗ value_w,i        y_r,i = Σ_keys read_r,i · h_i

and a low-rank part is one write and one read more: `left` is written with what `right` reads of the
state before the token, its WY term. Of a delta rule, what the key finds of the decayed state is
written along the key, with the value: one read more. Inside a chunk the WY terms of all tokens, or
what they write, solve one unit triangular system. With the pairs P of reads and writes and the
decays of `decay`,

    y_r = head ∘ read_r S + Σ_w P_rw value_w           S' = whole ∘ S + Σ_w (tail ∘ key_w)ᵀ value_w

Which products there are in the gradient is read off the plan's adjoint, role by role; none is
written down for a form.

References: Yang et al. 2024 (GLA, eq. 4 to 6; DeltaNet in parallel, eq. 9 to 12).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from dsfc.kernel_ir.build import KernelBuilder, Tile
from dsfc.kernel_ir.ir import Axis, Int, ceil_div, times
from dsfc.kernels.decay import Decay, HeadDecay, KeyDecay, Pair, Pulled, Sums, Tokens
from dsfc.kernels.operands import NAMES, Operands
from dsfc.plan.scan_ir import Factor, RoleScan, Scan

KEYS, WHOLE, PART = Axis("n", "N"), Axis("p", "P"), Axis("p", "PT")
"""All keys of a head, all channels, and a part of the channels."""


@dataclass(frozen=True)
class Write:
    """A write of each token: key ⊗ value."""

    key: Factor
    value: Factor


@dataclass(frozen=True)
class Look:
    """A read of each token, Σ_keys read · state, and the gradient of what the token gets.

    Attributes:
        early: whether it reads the state before the token's decay.
        strict: whether it reads the state before the token's writes.
    """

    read: Factor
    bar: Factor
    early: bool = False
    strict: bool = False


class Chunk:
    """The tiles of one chunk, and what is computed of them."""

    def __init__(self, of: Chunks, start: Int) -> None:
        self.of = of
        self.start = start
        self.tiles: dict[Factor, Tile] = {}
        self.outside: Tile | None = None  # what the key finds of the state that enters
        self.known_pairs: dict[tuple[Look, Write], Tile] = {}

    @cached_property
    def decay(self) -> Decay:
        """The decay of the chunk."""
        return self.of.decay(self.start)

    def tile(self, role: Factor) -> Tile:
        """Returns the tile of a role; an argument is loaded when it is first asked for."""
        if role not in self.tiles:
            self.tiles[role] = self.of.load(role, self.start)
        return self.tiles[role]

    def pair(self, look: Look, write: Write) -> Pair:
        """Returns a read and a write of the chunk."""
        x, y = self.tile(look.read), self.tile(write.key)
        return Pair(NAMES[look.read], NAMES[write.key], x, y, look.early, look.strict)

    def prepare(self, looks: tuple[Look, ...]) -> None:
        """Computes the pairs of some reads with all writes: all of them level by level.

        They are added to those that are known, of other keys: of all or none.
        """
        pairs = [(look, write) for look in looks for write in self.of.writes]
        onto = [self.known_pairs[p] for p in pairs if p in self.known_pairs]
        products = self.decay.products([self.pair(*p) for p in pairs], onto)
        self.known_pairs |= zip(pairs, products, strict=True)

    def pairs(self, look: Look, write: Write) -> Tile:
        """Returns the pairs of a read and a write."""
        return self.known_pairs[look, write]

    def after_head(self, look: Look) -> Tile:
        """Returns a read, decayed from the chunk's start."""
        return times_decay(self.tile(look.read), self.decay.head(look.early))

    def before_tail(self, write: Write) -> Tile:
        """Returns a key, decayed to the chunk's end."""
        return times_decay(self.tile(write.key), self.decay.tail)

    @property
    def whole(self) -> Tile | None:
        """The decay over the chunk."""
        return self.decay.whole

    def output(self, look: Look, state: Tile, writes: tuple[Write, ...]) -> Tile:
        """Returns what a read gets: of the state that enters, and of what the chunk writes."""
        outside = self.of.k.dot(self.after_head(look), state, self.of.keys)
        return self.inside(look, writes, outside)

    def inside(self, look: Look, writes: tuple[Write, ...], total: Tile) -> Tile:
        """Returns a tile and what a read gets of what the chunk writes."""
        return sum((self.between(look, write) for write in writes), total)

    def between(self, look: Look, write: Write) -> Tile:
        """Returns what a read gets of one write of the chunk."""
        part, value = self.of.tokens.triangle(look.strict), self.of.columns(self.tile(write.value))
        return self.of.k.dot(self.pairs(look, write), value, self.of.tokens.column, left_part=part)

    def next_state(self, state: Tile) -> Tile:
        """Returns the state that leaves the chunk."""
        k, of = self.of.k, self.of
        total = times_decay(state, self.whole)
        for write in of.writes:
            total = total + k.dot(self.before_tail(write), self.tile(write.value), of.tokens.row)
        return total

    def solve(self, state: Tile) -> None:
        """Finds what is written and is unknown, if anything is.

        WY terms solve (1 - P_ba) wy = what b reads without them. With a delta rule of strengths r,
        (1 - r P_kk) written = value + r retrieved from the state that enters.
        """
        if self.of.system is None:
            return
        look, write = self.of.system
        if self.of.has_delta:
            self.outside = self.output(look, state, ())
            right = self.tile(Factor.VALUE) + self.strength * self.outside
        else:
            right = self.output(look, state, tuple(w for w in self.of.writes if w != write))
        solved = self.solved(self.inverse(), right)
        self.tiles[write.value] = self.of.k.named(NAMES[write.value], solved)

    def solved(self, inverse: Tile, right: Tile) -> Tile:
        """Returns the solution of the system with a right side."""
        part, column = self.of.tokens.triangle(False), self.of.tokens.column
        return self.of.k.dot(inverse, self.of.columns(right), column, left_part=part, exact=True)

    def solved_back(self, inverse: Tile, right: Tile) -> Tile:
        """Returns that of the transposed system."""
        part, row = self.of.tokens.triangle(False), self.of.tokens.row
        bar = self.of.k.dot(inverse, right, row, left_part=part, exact=True)
        return self.of.k.rename(bar, self.of.tokens.column, row)

    @property
    def strength(self) -> Tile:
        """The strengths of the delta rule."""
        if Factor.STRENGTH not in self.tiles:
            self.tiles[Factor.STRENGTH] = self.of.load_strength(self.start)
        return self.tiles[Factor.STRENGTH]

    def retrieved(self) -> Tile:
        """Returns what each key finds: of the state that enters, and of what the chunk writes."""
        assert self.of.system is not None and self.outside is not None
        look, write = self.of.system
        return self.outside + self.between(look, write)

    def inverse(self) -> Tile:
        """Returns (1 - P_ba)⁻¹, or (1 - r P_kk)⁻¹."""
        assert self.of.system is not None
        pairs = self.pairs(*self.of.system)
        if self.of.has_delta:
            pairs = self.strength * pairs
        tokens, k = self.of.tokens, self.of.k
        return k.named("inverse", k.inverse_unit(-pairs, tokens.row, tokens.column))


def weights_name(look: Look, write: Write) -> str:
    """Returns the name of the gradient of the pairs of a read and a write."""
    return f"{NAMES[look.bar]}_{NAMES[write.value]}"


class Chunks:
    """What kernels of one scan have in common: its reads and writes, and their gradients."""

    def __init__(self, scan: Scan, shared: bool, size: int) -> None:
        self.scan = scan
        self._shared = shared
        self.tokens = Tokens(Axis("t", size), Axis("s", size))
        self.writes: tuple[Write, ...] = (Write(Factor.KEY, Factor.VALUE),)
        self.looks: tuple[Look, ...] = (Look(Factor.READ, Factor.COTANGENT),)
        self.system: tuple[Look, Write] | None = None
        self.has_delta = scan.delta is not None
        if scan.low_rank is not None:
            look = Look(Factor.RIGHT, Factor.WY_BAR, early=True, strict=True)
            write = Write(Factor.LEFT, Factor.WY)
            self.system = look, write
            self.writes, self.looks = (*self.writes, write), (*self.looks, look)
        if scan.delta is not None:
            look = Look(Factor.KEY, Factor.RETRIEVED_BAR, strict=True)
            write = Write(Factor.KEY, Factor.WRITTEN)
            self.system = look, write
            self.writes, self.looks = (write,), (*self.looks, look)

    def open(self, name: str, doc: str, keys: Axis = KEYS, channels: Axis = WHOLE) -> None:
        """Starts a kernel whose programs have some part of the keys and channels of a head."""
        self.k = KernelBuilder(name, doc)
        self.keys, self.channels = keys, channels
        self.held = Operands(self.k, self.scan, self._shared, self.tokens, keys, channels)
        self.count = ceil_div(self.held.length, self.tokens.size)

    def pull_pairs(self, chunk: Chunk, pairs: list[Pulled], reads: Sums, writes: Sums) -> None:
        """Takes in what passes inside a chunk, and stores the gradients of reads, keys and decay.

        Args:
            chunk: the chunk.
            pairs: all its pairs.
            reads: what reads get from outside of the chunk, by name.
            writes: what keys get from there.
        """
        chunk.decay.pull(pairs, reads, writes)
        names = {name: role for role, name in NAMES.items()}
        for name in dict.fromkeys((*reads, *writes)):
            total_of = Sums()
            for sums in (x for x in (reads, writes) if name in x):
                total_of.add("", sums[name])
            self.store_gradient(names[name], chunk, total_of[""])
        if chunk.decay.gradient is not None:
            self.held.store_decay_gradient(chunk.start, self.k.named("dg", chunk.decay.gradient))

    @property
    def decays(self) -> bool:
        """Whether states decay."""
        return self.scan.decay is not None

    @property
    def every_pair(self) -> list[tuple[Look, Write]]:
        """All reads with all writes."""
        return [(look, write) for look in self.looks for write in self.writes]

    def store_gradient(self, role: Factor, chunk: Chunk, gradient: Tile) -> None:
        """Stores the gradient of a role."""
        named = self.k.named(f"d{NAMES[role]}", gradient)
        self.held.store_gradient(role, chunk.start, named)

    def value_gradient(
        self, key: Factor, chunk: Chunk, future: Tile, looks: tuple[Look, ...]
    ) -> Tile:
        """Σ_keys key · h̃: of the state that leaves, and of what the chunk reads."""
        write = next(w for w in self.writes if w.key is key)
        total = self.k.dot(chunk.before_tail(write), future, self.keys)
        for look in looks:
            part = self.tokens.triangle(look.strict)
            pairs, bar = chunk.pairs(look, write), chunk.tile(look.bar)
            dot = self.k.dot(pairs, bar, self.tokens.row, left_part=part)
            total = total + self.k.rename(dot, self.tokens.column, self.tokens.row)
        return total

    def pull_write(self, s: RoleScan, chunk: Chunk, outside: Tile, writes: Sums) -> None:
        """Adds the gradient of a key by the state that leaves: Σ_channels value · h̃, decayed."""
        write = next(w for w in self.writes if w.value is s.read)
        total = times_decay(outside, chunk.decay.tail)
        chunk.decay.pull_tail(chunk.tile(write.key), total)
        writes[NAMES[s.result]] = total

    def pull_read(self, s: RoleScan, chunk: Chunk, outside: Tile, reads: Sums) -> None:
        """Adds the gradient of a read by the state that enters: Σ_channels bar · h, decayed."""
        look = next(x for x in self.looks if x.bar is s.read)
        total = times_decay(outside, chunk.decay.head(look.early))
        chunk.decay.pull_head(chunk.tile(look.read), total, look.early)
        reads[NAMES[s.result]] = total

    def weights(self, chunk: Chunk, look: Look, write: Write) -> Tile:
        """The gradient of the pairs of a read and a write: Σ_channels bar_i · value_j."""
        bar, value = chunk.tile(look.bar), self.columns(chunk.tile(write.value))
        return self.k.dot(bar, value, self.channels, out=self.tokens.triangle(look.strict))

    def start(self, chunk: Int) -> Int:
        """Returns the first token of a chunk."""
        return times(chunk, self.tokens.size)

    # --- what chunks are made of ------------------------------------------------------------------

    def decay(self, start: Int) -> Decay:
        """Returns the decay of the chunk that starts at a token."""
        if self.scan.decay is None:
            return HeadDecay(self.k, self.tokens, self.keys, None)
        log = self.k.named("log_decay", self.held.load_decay(start))
        return self.decay_of(log)

    def decay_of(self, log: Tile) -> Decay:
        """Returns the decay of which a tile is the logarithm."""
        form = KeyDecay if self.held.by_keys else HeadDecay
        factor = self.k.named("decay", self.k.map("exp", log, free=True))
        return form(self.k, self.tokens, self.keys, factor)

    def load(self, role: Factor, start: Int) -> Tile:
        """Returns the tile of an argument."""
        return self.held.load(role, start)

    def load_strength(self, start: Int) -> Tile:
        """Returns the tile of the delta rule's strengths."""
        return self.held.load_strength(start)

    def columns(self, tile: Tile) -> Tile:
        """Returns the tile with its tokens as columns."""
        return self.k.rename(tile, self.tokens.row, self.tokens.column)


def times_decay(x: Tile, factor: Tile | None) -> Tile:
    """Returns a tile times a decay; None stands for 1."""
    return x if factor is None else x * factor
