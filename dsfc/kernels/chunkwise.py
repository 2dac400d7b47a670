"""Kernels of scans over keys and channels: chunks of tokens as products of matrices.

A token writes to the state and reads from it,

    h_i = λ_i h_{i-1} + Σ_w key_w,i ⊗ value_w,i        y_r,i = Σ_keys read_r,i · h_i

and a low-rank part is one write and one read more: `left` is written with what `right` reads of the
state before the token, its WY term. Of a delta rule, what the key finds of the decayed state is
written along the key, with the value: one read more. Inside a chunk the WY terms of all tokens, or
what they write, solve one unit triangular system. With the pairs P of reads and writes and the
decays of `decay`,

    y_r = head ∘ read_r S + Σ_w P_rw value_w           S' = whole ∘ S + Σ_w (tail ∘ key_w)ᵀ value_w

The gradient runs the chunks in reverse, from the state that enters each one: which are those that
one pass forwards kept, one a span of chunks, and those of a span are computed again. Which products
there are in it is read off the plan's adjoint, role by role; none is written down for a form.

References: Yang et al. 2024 (GLA, eq. 4 to 6; DeltaNet in parallel, eq. 9 to 12).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from dsfc.expr.tree import Field
from dsfc.kernel_ir.build import KernelBuilder, LoopScope, Tile
from dsfc.kernel_ir.ir import (
    Access,
    Axis,
    Int,
    Kernel,
    Storage,
    Symbol,
    ceil_div,
    least,
    minus,
    plus,
    times,
)
from dsfc.kernels.decay import Decay, HeadDecay, KeyDecay, Pair, Pulled, Sums, Tokens
from dsfc.kernels.operands import NAMES, Operands, is_wide
from dsfc.plan.scan_ir import Adjoint, Factor, Form, RoleScan, Scan, ScanDirection

CHUNK: Mapping[Form, int] = {
    Form.MATRIX: 32,
    Form.KEYED: 16,
    Form.LOW_RANK: 32,
    Form.KEYED_LOW_RANK: 16,
    Form.DELTA: 32,
    Form.KEYED_DELTA: 16,
}
"""Tokens of a chunk. The floor is lowest where the pairs cost as much as the state; pairs of keys
are made level by level, so that short chunks are the better."""


KEYS, WHOLE, PART = Axis("n", "N"), Axis("p", "P"), Axis("p", "PT")
"""All keys of a head, all channels, and a part of the channels."""


@dataclass(frozen=True)
class Write:
    """What a token writes: key ⊗ value."""

    key: Factor
    value: Factor


@dataclass(frozen=True)
class Look:
    """What a token reads: Σ_keys read · state, and the gradient of what it gets.

    Attributes:
        early: whether it reads the state before the token's decay.
        strict: whether it reads the state before the token's writes.
    """

    read: Factor
    bar: Factor
    early: bool = False
    strict: bool = False


def has_chunks(scan: Scan) -> bool:
    """Whether a scan has these kernels."""
    return scan.form in CHUNK and scan.field is Field.REAL and not scan.powers


def forward(scan: Scan, shared: bool, name: str = "forward", chunk: int | None = None) -> Kernel:
    """Returns the kernel that computes outputs and the last state.

    Args:
        scan: a scan of a form with chunks.
        shared: whether read and key are the same for all heads.
        name: of the kernel.
        chunk: tokens of a chunk, a power of two; those of the form if not given.
    """
    return Chunks(scan, shared, chunk or CHUNK[scan.form]).forward(name)


def backward(
    scan: Scan,
    adjoint: Adjoint,
    shared: bool,
    name: str = "backward",
    chunk: int | None = None,
    split: bool = False,
    reload: bool = False,
) -> Kernel:
    """Returns the kernel that computes all gradients.

    Args:
        scan: a scan of a form with chunks.
        adjoint: its gradient, derived.
        shared: whether read and key are the same for all heads.
        name: of the kernel.
        chunk: tokens of a chunk, a power of two; those of the form if not given.
        split: whether a program has some channels of a head. The gradients that are sums over
            channels then have an axis of parts behind that of heads, and the caller sums it up.
        reload: whether the gradients of reads and keys load a chunk again, so that a program keeps
            less of it meanwhile.
    """
    chunks = Chunks(scan, shared, chunk or CHUNK[scan.form], reload)
    return chunks.backward(adjoint, name, split)


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
        """Computes the pairs of some reads with all writes: all of them level by level."""
        pairs = [(look, write) for look in looks for write in self.of.writes]
        products = self.decay.products([self.pair(*p) for p in pairs])
        self.known_pairs |= zip(pairs, products, strict=True)

    def pairs(self, look: Look, write: Write) -> Tile:
        """Returns the pairs of a read and a write."""
        return self.known_pairs[look, write]

    def again(self) -> Chunk:
        """Returns the same chunk, whose arguments are loaded again: less is kept meanwhile."""
        other = Chunk(self.of, self.start)
        solved = (Factor.WY, Factor.WY_BAR, Factor.WRITTEN, Factor.RETRIEVED_BAR)
        other.known_pairs |= self.known_pairs
        other.tiles |= {role: x for role, x in self.tiles.items() if role in solved}
        return other

    def after_head(self, look: Look) -> Tile:
        """Returns a read, decayed from the chunk's start."""
        return times_decay(self.tile(look.read), self.decay.head(look.early))

    def before_tail(self, write: Write) -> Tile:
        """Returns a key, decayed to the chunk's end."""
        return times_decay(self.tile(write.key), self.decay.tail)

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
        total = times_decay(state, self.decay.whole)
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
    """The kernels of one scan."""

    def __init__(self, scan: Scan, shared: bool, size: int, reload: bool = False) -> None:
        self.scan = scan
        self._shared = shared
        self._reload = reload
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

    # --- kernels ----------------------------------------------------------------------------------

    def forward(self, name: str) -> Kernel:
        """Returns the forward kernel: some channels of one head."""
        self.open(name, "Outputs and last state of one head, for some channels.", channels=PART)
        k, held = self.k, self.held
        held.place(PART, k.grid("part", held.parts(PART)))
        held.declare_arguments()
        o = k.argument("o", held.sizes(Factor.VALUE), Access.WRITE)
        last = k.argument("S_last", held.state_sizes, Access.WRITE, Storage.WIDE)
        first = held.load_state()
        with k.loop("chunk", self.count, S=first) as loop:
            chunk = Chunk(self, self.start(loop.counter))
            state = loop["S"]
            chunk.prepare(self.looks)
            chunk.solve(state)
            output = chunk.output(self.looks[0], state, self.writes)
            k.store(o, *held.at(Factor.VALUE, chunk.start), value=output)
            loop.next(S=chunk.next_state(state))
        k.store(last, *held.state_at, value=loop.last("S"))
        return k.kernel()

    def backward(self, adjoint: Adjoint, name: str, split: bool) -> Kernel:
        """Returns the backward kernel: all gradients of one head, or what some channels give."""
        doc = "The gradients of one head, chunk by chunk from the last."
        self.open(name, doc, channels=PART if split else WHOLE)
        k, held = self.k, self.held
        if split:
            part = k.grid("part", held.parts(PART))
            held.place(PART, part)
            held.sum_parts(PART, part)
        held.declare_arguments()
        held.declare(Factor.COTANGENT)
        d_last = k.argument("dS_last", held.state_sizes, storage=Storage.WIDE)
        for result in dict.fromkeys(x.result for x in adjoint.scans):
            held.declare_gradient(result)
        if self.has_delta:
            held.declare_strength_gradient()
        if self.scan.decay is not None:
            held.declare_decay_gradient()
        d_first = k.argument("dS", held.state_sizes, Access.WRITE, Storage.WIDE)
        spans, span = k.dynamic("SPANS"), k.dynamic("SPAN")
        tile = Symbol("N"), Symbol("PT" if split else "P")
        starts = k.argument("starts", (spans, *tile), Access.SCRATCH, Storage.WIDE)
        states = k.argument("states", (span, *tile), Access.SCRATCH, Storage.WIDE)
        entries = k.all(self.keys), k.all(self.channels)
        first = held.load_state()
        with k.loop("span", spans, S=first) as outer:
            k.store(starts, outer.counter, *entries, value=outer["S"])
            # The state after the last span is never read: the last span runs no chunks.
            done = least(minus(minus(spans, 1), outer.counter), 1)
            with k.loop("chunk", times(done, span), S=outer["S"]) as inner:
                at = plus(times(outer.counter, span), inner.counter)
                inner.next(S=self._advance(at, inner))
            outer.next(S=inner.last("S"))
        after = k.load(d_last, *held.state_at)
        with k.loop("span", spans, reverse=True, dS=after) as outer:
            first_chunk = times(outer.counter, span)
            count = least(span, minus(self.count, first_chunk))
            start = k.load(starts, outer.counter, *entries)
            with k.loop("chunk", count, S=start) as inner:
                k.store(states, inner.counter, *entries, value=inner["S"])
                inner.next(S=self._advance(plus(first_chunk, inner.counter), inner))
            with k.loop("chunk", count, reverse=True, dS=outer["dS"]) as inner:
                state = k.load(states, inner.counter, *entries)
                chunk = Chunk(self, self.start(plus(first_chunk, inner.counter)))
                inner.next(dS=self._retreat(chunk, state, inner["dS"], adjoint))
            outer.next(dS=inner.last("dS"))
        k.store(d_first, *held.state_at, value=outer.last("dS"))
        return k.kernel()

    def _advance(self, chunk_at: Int, loop: LoopScope) -> Tile:
        chunk = Chunk(self, self.start(chunk_at))
        if self.system is not None:
            chunk.prepare((self.system[0],))
            chunk.solve(loop["S"])
        return chunk.next_state(loop["S"])

    def _retreat(self, chunk: Chunk, state: Tile, future: Tile, adjoint: Adjoint) -> Tile:
        """Writes all gradients of a chunk; returns that of the state that enters it.

        Args:
            chunk: the chunk.
            state: the state that enters it.
            future: the gradient of the state that leaves it.
            adjoint: the derived gradient.
        """
        k = self.k
        chunk.prepare(self.looks)
        chunk.solve(state)
        self._solve_back(chunk, future)
        wide = [s for s in adjoint.scans if is_wide(s.result)]
        for s in wide:
            if self.has_delta:
                gradient = chunk.tile(Factor.VALUE_BAR)
            else:
                gradient = self.value_gradient(s.read, chunk, future, self.looks)
            self.store_gradient(s.result, chunk, gradient)
        for p in adjoint.products:
            assert (p.left, p.right) == (Factor.RETRIEVED, Factor.VALUE_BAR)
            product = k.sum(chunk.retrieved() * chunk.tile(p.right), self.channels)
            self.held.store_strength_gradient(chunk.start, k.named("dr", product))
        chunk = chunk.again() if self._reload else chunk
        # First what is computed of the states, which then need no registers any more.
        chunk.decay.pull_whole(k.sum(state * future, self.channels))
        reads, writes = Sums(), Sums()
        for s in adjoint.scans:
            if s.direction is ScanDirection.FORWARD:
                outside = k.dot(chunk.tile(s.read), state, self.channels)
                self.pull_read(s, chunk, outside, reads)
            elif s not in wide:
                outside = k.dot(chunk.tile(s.read), future, self.channels)
                self.pull_write(s, chunk, outside, writes)
        total = times_decay(future, chunk.decay.whole)
        for look in self.looks:
            bar = chunk.tile(look.bar)
            total = total + k.dot(chunk.after_head(look), bar, self.tokens.row)
        self.pull_pairs(chunk, self._pulled(chunk), reads, writes)
        return total

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

    def _pulled(self, chunk: Chunk) -> list[Pulled]:
        """Returns all pairs of a chunk with their gradients."""
        out = []
        for p in self.every_pair:
            weights = self.k.named(weights_name(*p), self.weights(chunk, *p))
            out.append(Pulled(chunk.pair(*p), weights, chunk.pairs(*p)))
        return out

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

    def _solve_back(self, chunk: Chunk, future: Tile) -> None:
        """Finds the gradients of what is solved for, by the transposed system.

        Those of WY terms solve (1 - P_baᵀ) d_wy = what comes from outside. With a delta rule the
        gradient of what is written is that of the value, and r times it that of what is retrieved.
        """
        if self.system is None:
            return
        look, write = self.system
        others = tuple(x for x in self.looks if x != look)
        right = self.value_gradient(write.key, chunk, future, others)
        bar = chunk.solved_back(chunk.inverse(), right)
        if self.has_delta:
            chunk.tiles[Factor.VALUE_BAR] = bar = self.k.named("d_value", bar)
            bar = chunk.strength * bar
        chunk.tiles[look.bar] = self.k.named(NAMES[look.bar], bar)

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
