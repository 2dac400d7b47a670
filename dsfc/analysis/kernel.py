"""The kernel Φ of a mixer at given tokens, its memory function, and Λ, B, C, D as numbers.

    y_i = Σ_j Φ_{ij} u_j,     Φ_{ij} = C_i Λ_i ⋯ Λ_{j+1} B_j (+ D_i where i = j)

Coefficients that depend on the tokens are those of the tokens given; so is every denominator. What
u is, is said with the kernel: what the drives carry, a value or an input. Each entry of u at each
token is a unit vector, and the System is run once for all of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsfc.analysis.point import Point
from dsfc.analysis.spectrum import attention_scores
from dsfc.analysis.widen import BASIS, widened
from dsfc.expr.build import ONE, div
from dsfc.expr.declarations import Tensor
from dsfc.expr.evaluate import canonical
from dsfc.expr.text import text
from dsfc.expr.tree import Expr, Field, Now, Ref, Time
from dsfc.matrices.inputs import Inputs, inputs_of, inputs_of_stream
from dsfc.matrices.linear import LinearPart, linear_parts, stages_read
from dsfc.structure.ir import Structure
from dsfc.system.evaluate import Evaluation, evaluate
from dsfc.system.formulas import guarded
from dsfc.system.ir import (
    Block,
    Cast,
    Direct,
    Drive,
    Factor,
    Gate,
    MapOut,
    Output,
    Ratio,
    Read,
    ReadOut,
    Stage,
    Stream,
    Sum,
    SumOver,
    System,
)
from dsfc.system.traverse import map_blocks
from dsfc.transform.flatten import read_out_type

Array = NDArray[Any]

EPSILON = 0.01
"""Beyond the horizon of a memory function it is below this part of its largest value."""

MARK = "″"
"""Ends the name of a copy of a state, and of a denominator; no spec can spell it."""


@dataclass(frozen=True)
class Kernel:
    """Φ of one linear part of an output.

    Attributes:
        part: which; "y" is the whole output.
        inputs: what u is made of, as text.
        values: Φ_{ij} as `[i, j, outputs, inputs]`; of softmax attention its weights, one a head.
    """

    part: str
    inputs: tuple[str, ...]
    values: Array

    @cached_property
    def norms(self) -> Array:
        """The Frobenius norm of each Φ_{ij}, `[i, j]`."""
        return np.asarray(np.sqrt((np.abs(self.values) ** 2).sum(axis=(2, 3))))

    @cached_property
    def memory(self) -> Array:
        """ρ(τ): the mean of ‖Φ_{t,t-τ}‖ over the last quarter of the tokens t.

        It ends at the largest τ that all of them have.
        """
        length = len(self.norms)
        rows = range(length - max(1, length // 4), length)
        lines = [self.norms[t, t::-1][: rows[0] + 1] for t in rows]
        return np.asarray(np.mean(lines, axis=0))

    @property
    def effective_memory(self) -> float:
        """Σ τ ρ(τ) / Σ ρ(τ) over τ ≥ 1, in tokens: the token itself is no memory.

        Of a slow mixer it grows with the sequence: what is further away is not counted.
        """
        past = self.memory[1:]
        whole = float(past.sum())
        return float((np.arange(1, len(past) + 1) * past).sum()) / whole if whole else 0.0

    @property
    def horizon(self) -> int:
        """The last τ at which ρ(τ) is at least `EPSILON` of its largest value of τ ≥ 1."""
        past = self.memory[1:]
        kept = np.flatnonzero((past > 0) & (past >= EPSILON * past.max(initial=0.0)))
        return int(kept[-1]) + 1 if len(kept) else 0


class NoKernel(ValueError):
    """A mixer has no kernel Φ; the text says why, as a clause."""


def kernel(system: System, structure: Structure, point: Point) -> Kernel:
    """Returns Φ at given tokens.

    Args:
        system: the System.
        structure: what `classify` gave of it.
        point: sizes, parameters and tokens.

    Raises:
        NoKernel: the output is not linear in anything, or needs more room than `LARGEST` numbers.
    """
    if structure.attentions:
        scores = attention_scores(system, structure.attentions[0], point)
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        shares = weights / weights.sum(axis=1, keepdims=True)
        named = f"value {text(structure.attentions[0].value)}"
        return Kernel("y", (named,), shares.reshape(*shares.shape[:2], -1, 1))
    part = _part(system)
    probe = _probe(system, part, point)
    size = probe.input_size
    columns = point.tokens * size
    _check_room(probe, columns)
    units = np.eye(columns).reshape(point.tokens, size, columns)
    out = probe.run(units, point)
    return Kernel(
        part.name,
        tuple(text(s) for s in probe.inputs.sources if s is not ONE),
        np.moveaxis(out.reshape(point.tokens, -1, point.tokens, size), 2, 1),
    )


@dataclass(frozen=True)
class TokenMatrices:
    """Λ, B, C and D at one token, as numbers.

    Attributes:
        Lambda: `[N, N]`.
        B: `[N, inputs]`.
        C: lag of a read → `[outputs, N]`; 0 reads the state after the update, 1 before.
        D: `[outputs, inputs]`.

    The output is Re(C h + D u).
    """

    Lambda: Array
    B: Array
    C: Mapping[int, Array]
    D: Array


def impulse(system: System, point: Point) -> Kernel:
    """Returns the column Φ_{i0}, as `[i, 1, outputs, inputs]`: what the first token leaves behind.

    Raises:
        NoKernel: the output is not linear in anything, or needs too much room.
    """
    part = _part(system)
    probe = _probe(system, part, point)
    size = probe.input_size
    _check_room(probe, size)
    units = np.zeros((point.tokens, size, size))
    units[0] = np.eye(size)
    out = probe.run(units, point).reshape(point.tokens, 1, -1, size)
    return Kernel(part.name, tuple(text(s) for s in probe.inputs.sources if s is not ONE), out)


def token_matrices(system: System, point: Point) -> TokenMatrices:
    """Returns Λ, B, C and D of the whole state at the first token.

    Raises:
        NoKernel: the output is not linear in anything, or its state is too large.
    """
    probe = _probe(system, _part(system), point)
    if probe.state_size > WIDEST:
        raise NoKernel(f"its state of {probe.state_size:,} numbers makes too large matrices")
    return probe.matrices()


LARGEST = 20_000_000
"""Most numbers that the states of all tokens may hold, for all unit vectors together."""

WIDEST = 1024
"""Most numbers of a state whose Λ is made as one matrix."""


def _part(system: System) -> LinearPart:
    parts = linear_parts(system)
    if not parts:
        raise NoKernel("its output is not linear in a state or an input, whatever is held fixed")
    return parts[0]


def _probe(system: System, part: LinearPart, point: Point) -> _Probe:
    probe = _Probe(system, part, point)
    if probe.input_size == 0:
        raise NoKernel("nothing that its states are driven by is linear in an input")
    return probe


def _check_room(probe: _Probe, columns: int) -> None:
    room = probe.point.tokens * columns * max(probe.state_size, probe.input_size)
    if room > LARGEST:
        raise NoKernel(f"Φ at these sizes needs {room:,} numbers, more than {LARGEST:,}")


class _Probe:
    """A System beside a copy of the stages that a part reads, driven by vectors of its own."""

    def __init__(self, system: System, part: LinearPart, point: Point) -> None:
        system = map_blocks(system, _streamed)
        self.system, self.part, self.point = system, part, point
        self.inputs: Inputs = inputs_of(system, part)
        self.stages = stages_read(system, part)
        self.blocks = tuple(b for s in self.stages for b in s.blocks)
        self.sizes = dict(point.sizes)
        self.stand_ins = tuple(self.inputs.stand_in(s) for s in self.inputs.sources)
        self.driven = tuple(s for s in self.inputs.sources if s is not ONE)
        if any(s.field is Field.COMPLEX for s in self.driven):
            raise NoKernel("what drives its state is complex")
        copied = {b.state for b in self.blocks}
        self.copies = {name: f"{name}{MARK}" for name in copied}
        self.streams: list[Stream] = []
        self.root = self._root(part.root)

    @property
    def input_size(self) -> int:
        """How many numbers u has."""
        return sum(self._count(s) for s in self.driven)

    @property
    def state_size(self) -> int:
        """How many numbers the states have."""
        return sum(math.prod(self.sizes[a.name] for a in b.axes) for b in self.blocks)

    def run(self, units: Array, point: Point) -> Array:
        """The output `[L, outputs, columns]` for vectors `[L, inputs, columns]` instead of u."""
        evaluated = self._evaluate(self.blocks, units, point)
        return evaluated.outputs["y"].reshape(point.tokens, -1, units.shape[2])

    def matrices(self) -> TokenMatrices:
        """Λ, B, C and D at the first token."""
        size, one = self.state_size, self._first(1)
        empty = np.zeros((1, self.input_size, size))
        still = tuple(
            replace(b, chain=tuple(replace(f, drives=()) for f in b.chain)) for b in self.blocks
        )
        states = self._states()
        moved = self._evaluate(still, empty, one, initial=states)
        units = np.eye(self.input_size)[None]
        driven = self._evaluate(self.blocks, units, one)
        quiet = tuple(replace(b, chain=(Factor((), ()),)) for b in self.blocks)
        direct = self._evaluate(quiet, units, one)
        reads = self._reads(states)
        if any(b.field is Field.COMPLEX for b in self.blocks):
            # Re(C h) of h and of i h are the two parts of C.
            reads = reads - 1j * self._reads({n: 1j * x for n, x in states.items()})
        return TokenMatrices(
            self._column(moved.finals, size),
            self._column(driven.finals, self.input_size),
            {lag: reads[lag] for lag in (0, 1) if reads[lag].any()},
            direct.outputs["y"].reshape(-1, self.input_size),
        )

    def _reads(self, states: Mapping[str, Array]) -> Array:
        """What states put in at the first token give there and one token later, as `[2, …]`."""
        held = {f"{self.copies[b.state]}{MARK}": b for b in self.blocks}
        readers = tuple(
            replace(b, chain=(Factor((), (Drive(ONE, _ref(name, b)),)),))
            for name, b in held.items()
        )
        values = {n: np.stack([states[self.copies[b.state]], 0 * states[self.copies[b.state]]])
                  for n, b in held.items()}  # fmt: skip
        tensors = tuple(Tensor(n, b.axes, b.field) for n, b in held.items())
        nothing = np.zeros((2, self.input_size, self.state_size))
        out = self._evaluate(
            readers, nothing, self._first(2), more=dict(zip(tensors, values.values(), strict=True))
        )
        y = out.outputs["y"]
        return y.reshape(2, math.prod(y.shape[1:-1]), self.state_size)

    def _first(self, tokens: int) -> Point:
        """The first token, as often as asked for."""
        return replace(
            self.point,
            inputs={n: np.repeat(x[:1], tokens, axis=0) for n, x in self.point.inputs.items()},
        )

    def _column(self, finals: Mapping[str, Array], columns: int) -> Array:
        rows = [finals[self.copies[b.state]].reshape(-1, columns) for b in self.blocks]
        return np.concatenate(rows) if rows else np.zeros((0, columns))

    def _states(self) -> dict[str, Array]:
        """Unit vectors as the values of the copied states."""
        identity, place, out = np.eye(self.state_size), 0, {}
        for b in self.blocks:
            shape = [self.sizes[a.name] for a in b.axes]
            count = math.prod(shape)
            out[self.copies[b.state]] = identity[place : place + count].reshape(*shape, -1)
            place += count
        return out

    def _evaluate(
        self,
        blocks: tuple[Block, ...],
        units: Array,
        point: Point,
        initial: Mapping[str, Array] | None = None,
        more: Mapping[Tensor, Array] | None = None,
    ) -> Evaluation:
        """The values of the System beside copies of blocks, driven by `[L, inputs, columns]`."""
        columns = units.shape[2]
        values = {t.name: x for t, x in (more or {}).items()} | dict(point.inputs)
        place = 0
        for source, ref in zip(self.inputs.sources, self.stand_ins, strict=True):
            shape = [self.sizes[a.name] for a in canonical(source.axes)]
            count = math.prod(shape)
            taken = units[:, place : place + count]
            if source is ONE:
                taken, count = np.zeros((len(units), 1, columns)), 0
            values[ref.name] = taken.reshape(len(units), *shape, columns)
            place += count
        tensors = tuple(
            Tensor(r.name, canonical(s.axes), s.field)
            for s, r in zip(self.inputs.sources, self.stand_ins, strict=True)
        )
        axes, field = read_out_type(self.part.root, self.system)
        whole = replace(
            self.system,
            inputs=(*self.system.inputs, *tensors, *(more or {})),
            streams=(*self.system.streams, *self.streams),
            stages=(*self.system.stages, *self._copy(blocks)),
            outputs=(Output("y", self.root, axes, field),),
        )
        wide = widened(whole, {t.name for t in (*tensors, *(more or {}))} | set(initial or {}))
        outputs = tuple(o if BASIS in o.axes else replace(o, axes=(*o.axes, BASIS))
                        for o in wide.outputs)  # fmt: skip
        sizes = {**self.sizes, BASIS.name: columns}
        return evaluate(replace(wide, outputs=outputs), values, point.params, sizes, initial)

    def _count(self, source: Expr) -> int:
        return math.prod(self.sizes[a.name] for a in source.axes)

    def _copy(self, blocks: tuple[Block, ...]) -> tuple[Stage, ...]:
        """The stages read, of copies of given blocks whose drives carry the vectors."""
        by_name = {b.state: self._copied(b) for b in blocks}
        return tuple(
            replace(s, blocks=tuple(by_name[b.state] for b in s.blocks)) for s in self.stages
        )

    def _copied(self, block: Block) -> Block:
        def factor(f: Factor) -> Factor:
            terms = tuple(replace(t, source=self.copies.get(t.source, t.source)) for t in f.terms)
            drives = tuple(replace(d, stream=self._marked(d.stream)) for d in f.drives)
            return Factor(terms, drives)

        chain = tuple(factor(f) for f in block.chain)
        return replace(block, state=self.copies[block.state], chain=chain)

    def _marked(self, stream: Expr) -> Expr:
        own = isinstance(stream, Ref) and stream.name.endswith(MARK)
        return stream if own else self.inputs.marked(stream)

    def _root(self, root: ReadOut) -> ReadOut:
        """The part with the copied states in it, its denominators as streams."""

        def visit(r: ReadOut) -> ReadOut:
            match r:
                case Read(terms, direct):
                    copied = (replace(t, source=self.copies[t.source]) for t in terms)
                    return Read(tuple(copied), None if direct is None else self._direct(direct))
                case Ratio(num, den, guard):
                    axes, field = read_out_type(den, self.system)
                    name = f"η{len(self.streams)}{MARK}"
                    self.streams.append(Stream(name, den, axes, field))
                    below = Ref(name, frozenset(axes), field, Time.TOKEN, Now(0))
                    return Gate(div(ONE, guarded(below, guard)), visit(num))
                case Gate(arg=a) | MapOut(arg=a) | Cast(arg=a) | SumOver(arg=a):
                    return replace(r, arg=visit(a))
                case Sum(args):
                    return Sum(tuple(map(visit, args)))
                case Direct(value):
                    return Direct(self._direct(value))
            raise TypeError(f"{type(r).__name__} is not linear")

        return visit(root)

    def _direct(self, e: Expr) -> Expr:
        return self.inputs.marked(e, self.driven)


def _streamed(block: Block) -> Block:
    """The block with keys that carry an input, beside the stream 1, as streams."""

    def streamed(d: Drive) -> Drive:
        fixed = d.stream is ONE and inputs_of_stream(d.key) not in ((ONE,), (d.key,))
        plain = isinstance(d.key, Ref) and isinstance(d.key.at, Now)
        return Drive(ONE, d.key) if d.stream is ONE and (fixed or plain) else d

    chain = tuple(replace(f, drives=tuple(map(streamed, f.drives))) for f in block.chain)
    return replace(block, chain=chain)


def _ref(name: str, block: Block) -> Ref:
    return Ref(name, frozenset(block.axes), block.field, Time.TOKEN, Now(0))
