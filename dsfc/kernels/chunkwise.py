"""Kernels of scans over keys and channels that go chunk by chunk: a state in a loop.

The gradient runs the chunks in reverse, from the state that enters each one: which are those that
one pass forwards kept, one a span of chunks, and those of a span are computed again. What is
computed of a chunk is in `chunks`.
"""

from __future__ import annotations

from collections.abc import Mapping

from dsfc.expr.tree import Field
from dsfc.kernel_ir.build import LoopScope, Tile
from dsfc.kernel_ir.ir import Access, Int, Kernel, Storage, Symbol, least, minus, plus, times
from dsfc.kernels.chunks import PART, Chunk, Chunks, times_decay, weights_name
from dsfc.kernels.decay import Pulled, Sums
from dsfc.kernels.operands import NAMES, is_wide
from dsfc.plan.scan_ir import Adjoint, Factor, Form, Scan, ScanDirection

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
    return _Chunkwise(scan, shared, chunk or CHUNK[scan.form]).forward(name)


def backward(
    scan: Scan,
    adjoint: Adjoint,
    shared: bool,
    name: str = "backward",
    chunk: int | None = None,
) -> Kernel:
    """Returns the kernel that computes all gradients.

    Args:
        scan: a scan of a form with chunks.
        adjoint: its gradient, derived.
        shared: whether read and key are the same for all heads.
        name: of the kernel.
        chunk: tokens of a chunk, a power of two; those of the form if not given.
    """
    return _Chunkwise(scan, shared, chunk or CHUNK[scan.form]).backward(adjoint, name)


class _Chunkwise(Chunks):
    """The kernels of one scan."""

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

    def backward(self, adjoint: Adjoint, name: str) -> Kernel:
        """Returns the backward kernel: all gradients of one head."""
        self.open(name, "The gradients of one head, chunk by chunk from the last.")
        k, held = self.k, self.held
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
        tile = Symbol("N"), Symbol("P")
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

    def _pulled(self, chunk: Chunk) -> list[Pulled]:
        """Returns all pairs of a chunk with their gradients."""
        out = []
        for p in self.every_pair:
            weights = self.k.named(weights_name(*p), self.weights(chunk, *p))
            out.append(Pulled(chunk.pair(*p), weights, chunk.pairs(*p)))
        return out

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
