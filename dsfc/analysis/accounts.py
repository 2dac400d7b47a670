"""The costs of a mixer: multiply-adds, numbers moved, its state beside a cache of keys and values.

Multiply-adds (MACs) of a token are those of linear maps, counted map by map from the System, and
those of its scans, which the backend counts for each mode. Numbers moved are those of torch's
operators one after another, where every value in between is written and read again; and those that
no kernel can save, each operand and each output of a scan once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from dsfc.emit.backend import ModeCost
from dsfc.expr.build import is_one, walk
from dsfc.expr.evaluate import NamedArray, evaluate
from dsfc.expr.tree import Axis, Expr, Field, LinearMap, Map, Ref
from dsfc.mixer.rules.initial_values import SizeScope
from dsfc.plan.flow import reads, written_by
from dsfc.plan.ir import Plan
from dsfc.plan.pairs_ir import AllPairs, Attention
from dsfc.plan.recurrence_ir import Recurrence
from dsfc.plan.scan_ir import Scan
from dsfc.plan.sizes import BATCH, CHUNK, LENGTH
from dsfc.system.ir import System
from dsfc.system.traverse import parts, system_expressions, terms, trees

LENGTHS = (256, 1024, 4096, 16384, 65536)
"""Lengths of sequences that costs are counted for."""

CHUNKED = 64
"""Tokens of a chunk."""

WIDTH = 4
"""Bytes of a number: float32."""


@dataclass(frozen=True)
class ModeAccount:
    """The scans of one mode at one length.

    Attributes:
        mode: its name.
        length: tokens of the sequence.
        macs: multiply-adds in products of matrices and in transforms, per token.
        words: numbers read and written per token by torch's operators.
    """

    mode: str
    length: int
    macs: float
    words: float


@dataclass(frozen=True)
class Account:
    """The costs of a mixer at some sizes, in one sequence.

    Attributes:
        sizes: of all axes, by name.
        projections: multiply-adds of linear maps per token.
        recurrence: those of one token of its states as they are written, one entry after another:
            one per entry for a decay, for each drive and for each read; real ones, of which a
            complex one has four.
        modes: scans, by mode and length; empty where no backend counts them.
        compulsory: numbers per token that kernels must read and write for its scans.
        state: numbers of its states; 0 where it has none.
        kept: numbers that it keeps of each token; 0 where its state is all.
        cache: numbers of a token in the cache of softmax attention as wide as its output.
        pairs: whether it has sums over pairs of tokens, whose multiply-adds `modes` do not count.
    """

    sizes: Mapping[str, int]
    projections: int
    recurrence: int
    modes: tuple[ModeAccount, ...]
    compulsory: int
    state: int
    kept: int
    cache: int
    pairs: bool

    def memory(self, length: int) -> int:
        """Returns how many numbers it keeps after so many tokens."""
        return self.state + self.kept * length

    @property
    def crossover(self) -> float:
        """The length from which its state is smaller than that cache; infinite if it grows."""
        return self.state / self.cache if not self.kept else math.inf


def account(
    system: System, plan: Plan, modes: Iterable[ModeCost], sizes: Mapping[str, int]
) -> Account:
    """Returns what a mixer costs.

    Args:
        system: the System.
        plan: its plan.
        modes: what a backend counts of the plan.
        sizes: of all axes, by name, copies of axes too.
    """
    count = _Sizes(sizes)
    known = {b.name: b.axes for b in plan.arrays} | {t.name: t.axes for t in plan.inputs}
    scans = [k for k in plan.kernels if isinstance(k, Scan | Recurrence | Attention | AllPairs)]
    moved = {name for k in scans for name, _ in reads(k)} | {
        n for k in scans for n in written_by(k)
    }
    attentions = [k for k in plan.kernels if isinstance(k, Attention | AllPairs)]
    kept = {n for k in attentions for n in k.kept if known[n]}
    return Account(
        sizes,
        sum(_macs(m, count) for m in _maps(system)),
        _recurrence(system, count),
        tuple(
            ModeAccount(m.mode, n, _value(m.operations, count, n) / 2, _value(m.words, count, n))
            for m in modes
            for n in LENGTHS
        ),
        sum(count.entries(known[name]) for name in moved if name in known),
        sum(count.entries(b.axes) for b in system.blocks),
        sum(count.entries(known[name]) for name in kept if name in known),
        2 * count.entries(system.outputs[0].axes),
        any(isinstance(k, AllPairs) for k in attentions),
    )


@dataclass(frozen=True)
class _Sizes:
    known: Mapping[str, int]

    def entries(self, axes: Iterable[Axis]) -> int:
        """How many entries an array over axes has, copies of axes among them."""
        names = (a.name if a.name in self.known else a.copy_of or a.name for a in axes)
        return math.prod(self.known[name] for name in names)


def _maps(system: System) -> Iterator[Map | tuple[LinearMap, tuple[Axis, ...]]]:
    """Every application of a linear map to a token-wise value, those that are equal once."""
    nodes = {e for x in system_expressions(system) for e in walk(x) if isinstance(e, Map)}
    yield from (e for e in nodes if not _is_constant(e))
    outer = tuple(system.outputs[0].axes)
    for tree in trees(system):
        for node in parts(tree):
            applied = getattr(node, "map", None)
            if isinstance(applied, LinearMap):
                yield applied, outer
        for t in terms(tree):
            yield from ((m, outer) for m in (t.matrix, t.after) if m is not None)
    for block in system.blocks:
        for t in (t for f in block.chain for t in f.terms):
            yield from ((m, block.axes) for m in (t.matrix, t.after) if m is not None)


def _recurrence(system: System, count: _Sizes) -> int:
    """Multiply-adds of one token of all states."""
    real = {b.state: 4 if b.field is Field.COMPLEX else 1 for b in system.blocks}
    entries = {b.state: count.entries(b.axes) for b in system.blocks}
    out = 0
    for block in system.blocks:
        for factor in block.chain:
            out += len(factor.drives) * entries[block.state] * real[block.state]
            for t in factor.terms:
                # What is contracted is read and written back; the identity costs nothing.
                passes = 2 if t.over else int(not (is_one(t.left) and is_one(t.right)))
                out += passes * entries[t.source] * real[t.source]
    reads_ = (t for tree in trees(system) for t in terms(tree))
    return out + sum(entries[t.source] * real[t.source] for t in reads_)


def _is_constant(e: Map) -> bool:
    return not any(isinstance(x, Ref) and x.at is not None for x in walk(e))


def _macs(applied: Map | tuple[LinearMap, tuple[Axis, ...]], count: _Sizes) -> int:
    """Multiply-adds of one application: entries of the map, for each entry of other axes."""
    if isinstance(applied, Map):
        map_, axes = applied.map, tuple(applied.axes)
    else:
        map_, axes = applied
    inside = (*map_.each, *map_.target, *map_.source)
    beside = [a for a in axes if a not in inside]
    return count.entries(inside) * count.entries(beside)


def _value(e: Expr, count: _Sizes, length: int) -> float:
    return float(evaluate(e, _Counting(count.known, length)).data)


@dataclass(frozen=True, slots=True)
class _Counting(SizeScope):
    """The leaves of a cost."""

    length: int = 0

    def size(self, axis: Axis) -> int:
        """Size of an axis, or of the axis that it is a copy of."""
        return self.known[axis.name if axis.name in self.known else axis.copy_of or axis.name]

    def param(self, name: str) -> NamedArray:  # type: ignore[override]  # it has no others
        """Batch, length and chunk."""
        values = {BATCH.name: 1, LENGTH.name: self.length, CHUNK.name: CHUNKED}
        return NamedArray((), np.asarray(float(values[name])))
