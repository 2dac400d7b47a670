"""Blocks and stages from updates: coefficients over streams, drives split, decays read off."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from dsfc.derive.affine import Affine
from dsfc.derive.coupling import coupling_of, coupling_of_flow
from dsfc.derive.decay import decay_of
from dsfc.derive.drive import Splitter
from dsfc.derive.inline import Definitions
from dsfc.derive.streams import Streams
from dsfc.derive.update import Update
from dsfc.expr.build import is_one, mul
from dsfc.expr.tree import Axis, Expr
from dsfc.system.ir import (
    Block,
    Coupling,
    Decay,
    Direction,
    Drive,
    Factor,
    KeptFlow,
    Ratio,
    Read,
    ReadOut,
    Stage,
    Stream,
    Term,
)
from dsfc.system.traverse import arguments


def over_streams(update: Update, streams: Streams) -> Update:
    """Returns the update with its coefficients rewritten over streams."""
    token = streams.token

    def over_tokens(form: Affine) -> Affine:
        terms = (replace(t, left=token(t.left), right=token(t.right)) for t in form.terms)
        return Affine(tuple(terms), None if form.rest is None else token(form.rest))

    flow = update.flow
    if flow is not None:
        pairs = tuple((token(left), over, token(right)) for left, over, right in flow.low_rank)
        flow = KeptFlow(flow.rule, token(flow.step), token(flow.diagonal), pairs, token(flow.drive))
    return Update(update.state, tuple(over_tokens(f) for f in update.chain), flow)


class Blocks:
    """Makes the blocks of one System, once all its read-outs are known.

    Which axes are channels is read off the uses: an axis of a stage's states is a key when a read
    or a term of the stage contracts it.
    """

    def __init__(
        self,
        splitter: Splitter,
        inliner: Definitions,
        read_outs: Iterable[ReadOut],
        updates: Iterable[Update],
    ) -> None:
        """Collects the uses of the states."""
        self.splitter = splitter
        self.inliner = inliner
        self._contracted: dict[str, frozenset[Axis]] = {}
        above: set[str] = set()
        below: set[str] = set()
        for r in read_outs:
            for t, in_denominator in _reads(r, False):
                self._use(t)
                (below if in_denominator else above).add(t.source)
        for u in updates:
            for f in u.chain:
                for t in f.terms:
                    self._use(t)
        self._below = below - above

    def _use(self, t: Term) -> None:
        have = self._contracted.get(t.source, frozenset())
        matrix = frozenset(t.matrix.source) if t.matrix is not None else frozenset()
        self._contracted[t.source] = have | (t.over - matrix)

    def stage(self, updates: list[Update]) -> Stage:
        """Returns the stage of some updates."""
        contracted = frozenset().union(
            *(self._contracted.get(u.state.name, frozenset()) for u in updates)
        )
        blocks = tuple(self._block(u, contracted) for u in updates)
        backward = updates[0].state.backward
        return Stage(Direction.BACKWARD if backward else Direction.FORWARD, blocks)

    def _block(self, u: Update, contracted: frozenset[Axis]) -> Block:
        s = u.state
        decay = self._decay(u)
        channels = frozenset(a for a in s.axes if not a.heads and a not in contracted)
        chain = tuple(self._factor(u, f, decay, channels) for f in u.chain)
        return Block(
            s.name, s.axes, s.field, chain, decay, u.flow, declared=s.declared,
            provenance=s.provenance, span=s.span,
        )  # fmt: skip

    def _decay(self, u: Update) -> Decay | None:
        diagonals: list[Expr] = []
        for f in u.chain:
            own = [t.left for t in f.terms if _is_diagonal(t, u.state.name)]
            if not own:
                return None
            diagonals += own
        value = mul(*diagonals)
        decay = decay_of(self.inliner.inlined(value))
        out = self.inliner.outlined
        phase = None if decay.phase is None else out(decay.phase)
        return Decay(value, out(decay.log), phase, decay.form)

    def _factor(
        self, u: Update, f: Affine, decay: Decay | None, channels: frozenset[Axis]
    ) -> Factor:
        if f.rest is None:
            return Factor(f.terms, ())
        below = u.state.name in self._below
        drives = self.splitter.split(f.rest, frozenset(u.state.axes), channels, below, u.flow)
        lefts = [t.left for t in f.terms if not _is_diagonal(t, u.state.name)]
        return Factor(
            f.terms, tuple(replace(d, coupling=self._coupling(u, d, decay, lefts)) for d in drives)
        )

    def _coupling(
        self, u: Update, drive: Drive, decay: Decay | None, lefts: list[Expr]
    ) -> Coupling:
        inlined = self.inliner.inlined
        if u.flow is not None:
            return coupling_of_flow(u.flow)
        full = None if decay is None else decay_of(inlined(decay.value))
        coupling = coupling_of(inlined(drive.key), full, [inlined(x) for x in lefts])
        scale = None if coupling.scale is None else self.inliner.outlined(coupling.scale)
        return Coupling(coupling.kind, scale)


def _is_diagonal(t: Term, state: str) -> bool:
    return t.source == state and not t.over and t.matrix is None and is_one(t.right)


def _reads(r: ReadOut, below: bool) -> Iterator[tuple[Term, bool]]:
    """The terms of all reads in a tree, each with whether it stands in a denominator."""
    if isinstance(r, Read):
        yield from ((t, below) for t in r.terms)
    elif isinstance(r, Ratio):
        yield from _reads(r.num, below)
        yield from _reads(r.den, True)
    else:
        for a in arguments(r):
            yield from _reads(a, below)


def read_outs_of(streams: Iterable[Stream]) -> Iterator[ReadOut]:
    """Yields the streams' values that are read-outs."""
    for s in streams:
        if not isinstance(s.value, Expr):
            yield s.value
