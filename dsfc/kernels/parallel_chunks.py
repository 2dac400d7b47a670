"""Kernels of scans over keys and channels that run chunk beside chunk, in thousands of programs.

A loop over chunks does in each step what only that step can do, and all else is done for all chunks
at once, by kernels before and after it. What one kernel leaves for the next lies in memory:

    pairs      each chunk      products of reads and keys inside it; of a system, its solution
    states     chunk by chunk  the state that enters each chunk
    outputs    each chunk      what reads get, of that state and of the chunk
    futures    from the last   the gradient of the state that leaves each chunk, those of values
    gradients  each chunk      those of reads, keys and decay, of both states

A system is solved for any state that may enter: of what is written, one part is that of the chunk
by itself (`own`), and one is what each token takes of the state (`taken`, its rows):

    written = own + taken S

References: Yang et al. 2024 (DeltaNet in parallel, eq. 9 to 12), where the two are U and -W.
"""

from __future__ import annotations

from dataclasses import dataclass

from dsfc.kernel_ir.build import Tile
from dsfc.kernel_ir.ir import Access, Argument, Axis, Int, Kernel, Position, Storage, times
from dsfc.kernels.chunks import KEYS, PART, Chunk, Chunks, Look, Write, times_decay, weights_name
from dsfc.kernels.decay import Decay, LogKeyDecay, Pulled, Sums
from dsfc.kernels.operands import NAMES, decays_by_keys, is_wide
from dsfc.plan.scan_ir import Adjoint, Factor, Scan, ScanDirection

SOME_KEYS = Axis("n", "NT")
"""A part of the keys of a head."""


def forward(scan: Scan, chunk: int) -> tuple[Kernel, ...]:
    """Returns the kernels that compute outputs and the last state, in the order of their launches.

    Args:
        scan: a scan of a form with chunks.
        chunk: tokens of a chunk, a power of two.
    """
    of = _ParallelChunks(scan, False, chunk)
    return of.pairs(of.looks[:1], back=False), of.states(back=False), of.outputs()


def backward(scan: Scan, adjoint: Adjoint, chunk: int) -> tuple[Kernel, ...]:
    """Returns the kernels that compute all gradients, in the order of their launches.

    Args:
        scan: a scan of a form with chunks.
        adjoint: its gradient, derived.
        chunk: tokens of a chunk, a power of two.
    """
    of = _ParallelChunks(scan, False, chunk)
    first = of.pairs(of.looks, back=True), of.states(back=True)
    return *first, of.futures(adjoint), of.gradients(adjoint)


@dataclass(frozen=True)
class _Place:
    """Where a tile lies in what is kept.

    Attributes:
        sizes: of the argument.
        at: positions.
    """

    sizes: tuple[Int, ...]
    at: tuple[Position, ...]


class _Decayed(Chunk):
    """A chunk whose decays of keys an earlier kernel has taken: reads and keys are kept decayed."""

    def __init__(self, of: _ParallelChunks, start: Int, at: Int) -> None:
        super().__init__(of, start)
        self._of, self._at = of, at

    def after_head(self, look: Look) -> Tile:
        """Returns a read, decayed from the chunk's start."""
        return self._of.kept_decayed("head", look.read, self.start)

    def before_tail(self, write: Write) -> Tile:
        """Returns a key, decayed to the chunk's end."""
        return self._of.kept_decayed("tail", write.key, self.start)

    @property
    def whole(self) -> Tile | None:
        """The decay over the chunk."""
        return self._of.kept_whole(self._at)


class _ParallelChunks(Chunks):
    """The kernels of one scan."""

    def open(self, name: str, doc: str, keys: Axis = KEYS, channels: Axis = PART) -> None:
        """Starts a kernel whose programs have some part of the keys and channels of a head."""
        super().open(name, doc, keys, channels)
        self._known: dict[str, Argument] = {}

    def decay_of(self, log: Tile) -> Decay:
        """Returns the decay of which a tile is the logarithm."""
        if self.held.by_keys:
            return LogKeyDecay(self.k, self.tokens, self.keys, log)
        return super().decay_of(log)

    # --- kernels ----------------------------------------------------------------------------------

    def pairs(self, looks: tuple[Look, ...], *, back: bool) -> Kernel:
        """Returns the kernel of the pairs of some reads, and of what solves the system.

        Args:
            looks: the reads whose pairs are kept.
            back: whether the inverse is kept too.
        """
        self.open("pairs", "Products of reads and keys inside one chunk.", SOME_KEYS)
        k, held = self.k, self.held
        at = k.grid("chunk", self.count)
        start = self.start(at)
        solving = self.system[:1] if self.system is not None else ()
        wanted = [p for p in self.every_pair if p[0] in (*looks, *solving)]
        zeros = k.zeros(self.tokens.row, self.tokens.column)
        first = {_name(p): zeros for p in wanted}
        with k.loop("part", held.parts(SOME_KEYS), reverse=False, **first) as loop:
            held.place(SOME_KEYS, loop.counter)
            chunk = Chunk(self, start)
            chunk.known_pairs |= {p: loop[_name(p)] for p in wanted}
            if self.held.by_keys:
                self._keep_decayed(chunk, at)
            chunk.prepare(tuple(dict.fromkeys((*looks, *solving))))
            loop.next(**{_name(p): chunk.pairs(*p) for p in wanted})
        chunk = Chunk(self, start)
        chunk.known_pairs |= {p: loop.last(_name(p)) for p in wanted}
        for look, write in wanted:
            if look in looks and ((look, write) != self.system or self._recalls_system):
                self._keep(_name((look, write)), self._by_pair(at), chunk.pairs(look, write))
        if self.system is not None:
            self._solve(chunk, at, keep_inverse=back)
        return k.kernel()

    def _solve(self, chunk: Chunk, at: Int, *, keep_inverse: bool) -> None:
        """Keeps what solves the system of a chunk, for any state that enters it."""
        assert self.system is not None
        k, held, (look, write) = self.k, self.held, self.system
        inverse = chunk.inverse()
        if keep_inverse:
            self._keep("inverse", self._by_pair(at), inverse, Storage.WIDE)
        with k.loop("part", held.parts(SOME_KEYS)) as loop:
            held.place(SOME_KEYS, loop.counter)
            rows = Chunk(self, chunk.start).after_head(look)
            rows = chunk.strength * rows if self.has_delta else rows
            taken = self._by_token(Factor.KEY, chunk.start)
            self._keep("taken", taken, chunk.solved(inverse, rows))
        with k.loop("part", held.parts(PART)) as loop:
            held.place(PART, loop.counter)
            part = Chunk(self, chunk.start)
            part.known_pairs |= chunk.known_pairs
            if self.has_delta:
                right = part.tile(Factor.VALUE)
            else:
                (other,) = (w for w in self.writes if w != write)
                right = part.between(look, other)
            own = self._by_token(Factor.VALUE, chunk.start)
            self._keep("own", own, chunk.solved(inverse, right))

    def states(self, *, back: bool) -> Kernel:
        """Returns the kernel of the states that enter the chunks, and of the last.

        Args:
            back: whether the last state is of no use.
        """
        self.open("states", "The state that enters each chunk of one head, for some channels.")
        k, held = self.k, self.held
        held.place(PART, k.grid("part", held.parts(PART)))
        first = held.load_state()
        with k.loop("chunk", self.count, S=first) as loop:
            chunk, state = self._chunk(loop.counter), loop["S"]
            self._keep("states", self._by_state(loop.counter), state)
            if self.system is not None:
                _, write = self.system
                own = self._kept("own", self._by_token(Factor.VALUE, chunk.start))
                taken = self._kept("taken", self._by_token(Factor.KEY, chunk.start))
                written = own + k.dot(taken, state, self.keys)
                chunk.tiles[write.value] = written
                self._keep_row(write.value, chunk)
            loop.next(S=chunk.next_state(state))
        if not back:
            last = k.argument("S_last", held.state_sizes, Access.WRITE, Storage.WIDE)
            k.store(last, *held.state_at, value=loop.last("S"))
        return k.kernel()

    def outputs(self) -> Kernel:
        """Returns the kernel of the outputs."""
        self.open("outputs", "Outputs of one chunk, for some channels.", SOME_KEYS)
        k, held, look = self.k, self.held, self.looks[0]
        at = k.grid("chunk", self.count)
        held.place(PART, k.grid("part", held.parts(PART)))
        o = k.argument("o", held.sizes(Factor.VALUE), Access.WRITE)
        start, zeros = self.start(at), k.zeros(self.tokens.row, PART)
        with k.loop("keys", held.parts(SOME_KEYS), o=zeros) as loop:
            held.place(SOME_KEYS, loop.counter)
            reads = self._chunk(at).after_head(look)
            loop.next(
                o=loop["o"] + k.dot(reads, self._kept("states", self._by_state(at)), self.keys)
            )
        chunk = Chunk(self, start)
        self._recall(chunk, at, [(look, write) for write in self.writes])
        if self.system is not None:
            _, write = self.system
            chunk.tiles[write.value] = self._row(write.value, chunk)
        k.store(
            o, *held.at(Factor.VALUE, start), value=chunk.inside(look, self.writes, loop.last("o"))
        )
        return k.kernel()

    def futures(self, adjoint: Adjoint) -> Kernel:
        """Returns the kernel of the gradients of states and values."""
        doc = "The gradient of the state that leaves each chunk of one head, for some channels."
        self.open("futures", doc)
        k, held = self.k, self.held
        held.place(PART, k.grid("part", held.parts(PART)))
        after = held.load_state("dS_last")
        values = [s for s in adjoint.scans if is_wide(s.result)]
        for s in values:
            held.declare_gradient(s.result)
        d_first = k.argument("dS", held.state_sizes, Access.WRITE, Storage.WIDE)
        with k.loop("chunk", self.count, reverse=True, dS=after) as loop:
            chunk, future = self._chunk(loop.counter), loop["dS"]
            self._keep("futures", self._by_state(loop.counter), future)
            self._recall(chunk, loop.counter, [p for p in self.every_pair if p != self.system])
            total = times_decay(future, chunk.whole)
            looks = self.looks
            if self.system is not None:
                look, write = self.system
                looks = tuple(x for x in looks if x != look)
                right = self.value_gradient(write.key, chunk, future, looks)
                taken = self._kept("taken", self._by_token(Factor.KEY, chunk.start))
                total = total + k.dot(taken, right, self.tokens.row)
                inverse = self._kept("inverse", self._by_pair(loop.counter), Storage.WIDE)
                chunk.tiles[self._bar(look)] = chunk.solved_back(inverse, right)
                self._keep_row(self._bar(look), chunk)
            for s in values:
                if self.has_delta:
                    gradient = chunk.tile(Factor.VALUE_BAR)
                else:
                    gradient = self.value_gradient(s.read, chunk, future, self.looks)
                self.store_gradient(s.result, chunk, gradient)
            for look in looks:
                bar = chunk.tile(look.bar)
                total = total + k.dot(chunk.after_head(look), bar, self.tokens.row)
            loop.next(dS=total)
        k.store(d_first, *held.state_at, value=loop.last("dS"))
        return k.kernel()

    def gradients(self, adjoint: Adjoint) -> Kernel:
        """Returns the kernel of the gradients of reads, keys, decay and strengths.

        What is a sum over keys, a program has of its own part of them: the caller adds those up.
        """
        self.open(
            "gradients", "The gradients of one chunk by some of its reads and keys.", SOME_KEYS
        )
        k, held = self.k, self.held
        at = k.grid("chunk", self.count)
        part = k.grid("part", held.parts(SOME_KEYS))
        held.place(SOME_KEYS, part)
        held.sum_parts(SOME_KEYS, part)
        start = self.start(at)
        narrow = [s for s in adjoint.scans if not is_wide(s.result)]
        for result in dict.fromkeys(s.result for s in narrow):
            held.declare_gradient(result)
        if self.decays:
            held.declare_decay_gradient()
        chunk = Chunk(self, start)
        sums = self._sums_over_channels(start, at)
        by_keys = decays_by_keys(self.scan)
        if self._recalls_system:
            self._recall(chunk, at, [p for p in self.every_pair if not by_keys or p == self.system])
        # The pairs are sums over all keys: what is computed of them is the first part's.
        is_first = k.less(k.index(self.tokens.row, times(part, self.tokens.size)), self.tokens.size)
        pairs = {p: k.where(is_first, x, 0.0) for p, x in chunk.known_pairs.items()}
        if self.has_delta:
            held.declare_strength_gradient()
            self._pull_strength(chunk, pairs, sums)
        if self.decays:
            chunk.decay.pull_whole(sums["across"])
        reads, writes = Sums(), Sums()
        for s in narrow:
            if s.direction is ScanDirection.FORWARD:
                self.pull_read(s, chunk, sums[_outside(s.read)], reads)
            else:
                self.pull_write(s, chunk, sums[_outside(s.read)], writes)
        weights = [sums[weights_name(*p)] for p in self.every_pair]
        self.pull_pairs(
            chunk,
            [
                Pulled(chunk.pair(*p), x, pairs.get(p))
                for p, x in zip(self.every_pair, weights, strict=True)
            ],
            reads,
            writes,
        )
        return k.kernel()

    def _sums_over_channels(self, start: Int, at: Int) -> Sums:
        """Returns what gradients are sums of over channels.

        Of each read and write, with the state; of each pair; of both states.
        """
        k, held = self.k, self.held
        row, column, keys = self.tokens.row, self.tokens.column, self.keys
        bars = [_outside(x.bar) for x in self.looks]
        values = [_outside(x.value) for x in self.writes]
        first = dict.fromkeys([*bars, *values], k.zeros(row, keys))
        first |= {weights_name(*p): k.zeros(row, column) for p in self.every_pair}
        if self.decays:
            first["across"] = k.zeros(keys)
        with k.loop("channels", held.parts(PART), reverse=False, **first) as loop:
            held.place(PART, loop.counter)
            chunk = Chunk(self, start)
            state, future = (
                self._kept("states", self._by_state(at)),
                self._kept("futures", self._by_state(at)),
            )
            if self.system is not None:
                look, write = self.system
                chunk.tiles[look.bar] = self._row(self._bar(look), chunk)
                chunk.tiles[write.value] = self._row(write.value, chunk)
            added = {_outside(x.bar): k.dot(chunk.tile(x.bar), state, PART) for x in self.looks}
            added |= {
                _outside(x.value): k.dot(chunk.tile(x.value), future, PART) for x in self.writes
            }
            added |= {weights_name(*p): self.weights(chunk, *p) for p in self.every_pair}
            if self.decays:
                added["across"] = k.sum(state * future, PART)
            loop.next(**{name: loop[name] + x for name, x in added.items()})
        return Sums({name: loop.last(name) for name in first})

    def _pull_strength(
        self, chunk: Chunk, pairs: dict[tuple[Look, Write], Tile], sums: Sums
    ) -> None:
        """Stores the gradient of the strengths; what bars of values gave becomes that of bars."""
        assert self.system is not None
        k, (look, write) = self.k, self.system
        bar, weights = _outside(look.bar), weights_name(look, write)
        outside = k.sum(chunk.after_head(look) * sums[bar], self.keys)
        own = k.sum(pairs[look, write] * sums[weights], self.tokens.column)
        self.held.store_strength_gradient(chunk.start, k.named("dr", outside + own))
        for name in (bar, *(weights_name(look, w) for w in self.writes)):
            sums[name] = chunk.strength * sums[name]

    @property
    def _recalls_system(self) -> bool:
        """Whether gradients need the pairs of the system, besides its solution."""
        return self.has_delta or not decays_by_keys(self.scan)

    def _bar(self, look: Look) -> Factor:
        """The bar that is kept of the system's read: of a delta rule, that of the value."""
        return Factor.VALUE_BAR if self.has_delta else look.bar

    # --- what is kept from kernel to kernel -------------------------------------------------------

    def _chunk(self, at: Int) -> Chunk:
        """Returns a chunk, of which a decay of keys is not computed again."""
        start = self.start(at)
        return _Decayed(self, start, at) if self.held.by_keys else Chunk(self, start)

    def _keep_decayed(self, chunk: Chunk, at: Int) -> None:
        """Keeps what depends on a decay of keys, for kernels that take it chunk by chunk.

        Of each read that asks the state that enters, and of each key: products round both anyway.
        """
        for look in (x for x in self.looks if self.system is None or x != self.system[0]):
            place = self._by_token(look.read, chunk.start)
            self._keep(_decayed(look.read, "head"), place, chunk.after_head(look))
        for write in self.writes:
            place = self._by_token(write.key, chunk.start)
            self._keep(_decayed(write.key, "tail"), place, chunk.before_tail(write))
        assert chunk.whole is not None
        self._keep("whole", self._by_chunk(at), chunk.whole, Storage.WIDE)

    def kept_decayed(self, word: str, role: Factor, start: Int) -> Tile:
        """Returns a read or a key that was kept decayed."""
        return self._kept(_decayed(role, word), self._by_token(role, start))

    def kept_whole(self, at: Int) -> Tile:
        """Returns the decay over a chunk."""
        return self._kept("whole", self._by_chunk(at), Storage.WIDE)

    def _recall(self, chunk: Chunk, at: Int, pairs: list[tuple[Look, Write]]) -> None:
        """Loads pairs of a chunk."""
        chunk.known_pairs |= {p: self._kept(_name(p), self._by_pair(at)) for p in pairs}

    def _kept(self, name: str, where: _Place, storage: Storage = Storage.KEPT) -> Tile:
        """Returns what an earlier kernel kept under a name."""
        return self.k.load(self._argument(name, where, Access.READ, storage), *where.at)

    def _keep(self, name: str, where: _Place, value: Tile, storage: Storage = Storage.KEPT) -> None:
        """Keeps a tile for a later kernel."""
        self.k.store(self._argument(name, where, Access.WRITE, storage), *where.at, value=value)

    def _argument(self, name: str, where: _Place, access: Access, storage: Storage) -> Argument:
        if name not in self._known:
            self._known[name] = self.k.argument(name, where.sizes, access, storage)
        return self._known[name]

    def _keep_row(self, role: Factor, chunk: Chunk) -> None:
        """Keeps what a chunk has for a role over channels."""
        tile = self.k.named(NAMES[role], chunk.tiles[role])
        self._keep(NAMES[role], self._by_token(Factor.VALUE, chunk.start), tile)

    def _row(self, role: Factor, chunk: Chunk) -> Tile:
        """Returns what is kept for a role over channels."""
        return self._kept(NAMES[role], self._by_token(Factor.VALUE, chunk.start))

    def _by_pair(self, at: Int) -> _Place:
        """The place of what a chunk has for each two of its tokens."""
        batch, heads, *_ = self.held.state_sizes
        row, column = self.tokens.row, self.tokens.column
        sizes = batch, heads, self.count, self.tokens.size, self.tokens.size
        return _Place(
            sizes, (self.held.row, self.held.head, at, self.k.all(row), self.k.all(column))
        )

    def _by_token(self, like: Factor, start: Int) -> _Place:
        """The place of what lies in memory like the tensor of a role."""
        return _Place(self.held.sizes(like), self.held.at(like, start))

    def _by_chunk(self, at: Int) -> _Place:
        """The place of what each key has for each chunk."""
        (batch, heads, keys, _), (row, head, key, _) = self.held.state_sizes, self.held.state_at
        return _Place((batch, heads, self.count, keys), (row, head, at, key))

    def _by_state(self, at: Int) -> _Place:
        """The place of a state for each chunk."""
        sizes, place = self.held.state_sizes, self.held.state_at
        return _Place((*sizes[:2], self.count, *sizes[2:]), (*place[:2], at, *place[2:]))


def _decayed(role: Factor, word: str) -> str:
    """The name of what is kept of a read or a key with its decay."""
    return f"{NAMES[role]}_{word}"


def _outside(role: Factor) -> str:
    """The name of what a role over channels has with the state that enters or leaves."""
    return f"{NAMES[role]}_outside"


def _name(pair: tuple[Look, Write]) -> str:
    """The name of the pairs of a read and a write."""
    look, write = pair
    return f"{NAMES[look.read]}_{NAMES[write.key]}"
