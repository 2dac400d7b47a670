"""Eigenvalues of the transitions of a mixer, and half-lives.

The eigenvalues of a diagonal transition are its diagonal, which `classify` has as an expression;
any other matrix is what one step makes of unit vectors. States that read each other are one vector
with one matrix. The eigenvalues of a transition that varies in time belong to the basis that the
state is stored in, its gauge; every spectrum says which.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsfc.analysis.point import Point
from dsfc.analysis.widen import BASIS, widened
from dsfc.expr.declarations import Tensor
from dsfc.expr.evaluate import canonical
from dsfc.expr.tree import Axis, Expr
from dsfc.structure.classify import classify
from dsfc.structure.ir import Attention
from dsfc.system.evaluate import evaluate
from dsfc.system.ir import Block, Direct, Factor, Output, Stage, System
from dsfc.transform.gauge import eta_gauge

Array = NDArray[Any]

EDGES = (0, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1.001, 1.01, 1.1, 2, math.inf)
"""Edges of the bins of |λ|: narrow at 0 and 1, open above."""


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues of the transition of one state, or of states that read each other.

    Attributes:
        state: its name; of states that read each other, which have one Λ, all names: `s and t`.
        paper: whether in the paper's gauge, where Λ_i holds the ratio of normalisers.
        values: `[tokens, heads, eigenvalues]`; one token where Λ is the same at all, one head where
            all have the same or there are none. The paper's gauge has no value at the first token.
    """

    state: str
    paper: bool
    values: Array

    @property
    def fixed(self) -> bool:
        """Whether it is the same at every token."""
        return len(self.values) == 1


def spectra(system: System, point: Point) -> tuple[Spectrum, ...]:
    """Returns the spectrum of every state, then those that the paper's gauge changes.

    Args:
        system: the System.
        point: sizes, parameters and tokens.
    """
    lowered = _spectra(system, point, False)
    paper, _ = eta_gauge(system)
    if paper == system:
        return lowered
    before = {s.state: s.values for s in lowered}
    changed = _spectra(paper, point, True)
    return lowered + tuple(p for p in changed if not _same(p.values, before[p.state]))


def attention_ratios(system: System, attention: Attention, point: Point) -> Array:
    """Returns η_{i-1} / η_i of softmax attention from the second token on, `[L - 1, heads, 1]`.

    η_i is the sum of the weights of all tokens so far. The states that such a transition would have
    are of no finite size; the ratios are what eigenvalues of softmax attention are in the papers.
    They are computed from logarithms.
    """
    scores = attention_scores(system, attention, point)
    peak = scores.max(axis=1, keepdims=True)
    logs = peak[:, 0] + np.log(np.exp(scores - peak).sum(axis=1))
    return np.asarray(np.exp(logs[:-1] - logs[1:]).reshape(len(logs) - 1, -1, 1))


def attention_scores(system: System, attention: Attention, point: Point) -> Array:
    """Returns the scores of softmax attention, `[i, j, *heads]`; -∞ at tokens to come."""
    shared = canonical({*attention.heads, *attention.keys})
    sizes = [point.sizes[a.name] for a in shared]
    named = {"query": attention.query, "key": attention.key, "scale": attention.scale}
    outputs = tuple(Output(n, Direct(e), canonical(e.axes), e.field) for n, e in named.items())
    values = evaluate(replace(system, outputs=outputs), point.inputs, point.params, point.sizes)
    spread = {}
    for name, e in (("query", attention.query), ("key", attention.key)):
        own = canonical(e.axes)
        shape = [point.sizes[a.name] if a in own else 1 for a in shared]
        array = values.outputs[name].reshape(point.tokens, *shape)
        spread[name] = np.broadcast_to(array, (point.tokens, *sizes))
    keys = tuple(2 + shared.index(a) for a in attention.keys)
    scale = values.outputs["scale"][0]
    scores = scale * (spread["query"][:, None] * spread["key"][None]).sum(axis=keys)
    past = np.tri(point.tokens, dtype=bool)
    return np.where(past.reshape(*past.shape, *[1] * (scores.ndim - 2)), scores, -np.inf)


def histogram(values: Array) -> Array:
    """Returns the share of |λ| in each bin of `EDGES`.

    Args:
        values: eigenvalues.
    """
    return np.asarray(np.histogram(np.abs(values).reshape(-1), EDGES)[0] / values.size)


def half_lives(values: Array) -> Array:
    """Returns after how many tokens half of what is stored is gone, ln ½ / ln |λ|, of each value.

    Args:
        values: eigenvalues; those of modulus 1 or more forget nothing, which is infinity.
    """
    with np.errstate(divide="ignore"):
        log = np.log(np.abs(values))
        return np.where(log < -1e-12, -math.log(2) / np.minimum(log, -1e-12), math.inf)


def memory(values: Array) -> tuple[float, float, float]:
    """Returns the 5th, 50th and 95th percentile of the half-lives of eigenvalues, in tokens."""
    lives = half_lives(values).reshape(-1)
    low, middle, high = np.percentile(lives, (5, 50, 95), method="nearest")
    return float(low), float(middle), float(high)


def _same(paper: Array, lowered: Array) -> bool:
    """Whether two spectra are equal up to rounding, at the tokens that both have."""
    shown = lowered[-len(paper) :]
    return paper.shape[1:] == shown.shape[1:] and np.allclose(paper, shown, rtol=1e-9, atol=0)


def _spectra(system: System, point: Point, paper: bool) -> tuple[Spectrum, ...]:
    out = []
    kinds = classify(system)
    known = None
    for stage in system.stages:
        for blocks in _joint(stage):
            kind = kinds.block(blocks[0].state)
            if len(blocks) == 1 and kind.cell.diagonal and kind.decay is not None:
                values = _diagonal(system, kind.decay.value, kind.heads, point)
            else:
                known = known or _with_streams_given(system, point)
                of = [kinds.block(b.state) for b in blocks]
                heads = tuple(a for a in kind.heads if all(a in k.heads for k in of))
                fixed = all(k.transition_fixed for k in of)
                values = _matrix(known, replace(stage, blocks=blocks), heads, fixed)
            # The first token has no normaliser before it: its Λ has no meaning in that gauge.
            fixed = bool((values == values[:1]).all())
            name = " and ".join(b.state for b in blocks)
            out.append(Spectrum(name, paper, values[:1] if fixed else values[paper:]))
    return tuple(out)


def _joint(stage: Stage) -> list[tuple[Block, ...]]:
    """The blocks of a stage, those together that read each other, directly or through others.

    What one reads of another that does not read it back is no part of the eigenvalues: in the order
    of reading, every factor of Λ is block triangular.
    """
    names = {b.state for b in stage.blocks}
    reached = {b.state: _sources(b) & names | {b.state} for b in stage.blocks}
    for middle in names:
        for name in names:
            if middle in reached[name]:
                reached[name] |= reached[middle]
    out, left = [], list(stage.blocks)
    while left:
        first = left[0].state
        both = [b for b in left if b.state in reached[first] and first in reached[b.state]]
        left = [b for b in left if b not in both]
        out.append(tuple(both))
    return out


def _sources(block: Block) -> set[str]:
    return {t.source for f in block.chain for t in f.terms}


def decays(system: System, decay: Expr, point: Point) -> Array:
    """Returns the diagonal of a transition at every token, `[L, *axes]` in canonical order."""
    wanted = Output("decay", Direct(decay), canonical(decay.axes), decay.field)
    asked = replace(system, outputs=(wanted,))
    return evaluate(asked, point.inputs, point.params, point.sizes).outputs["decay"]


def _diagonal(system: System, decay: Expr, heads: tuple[Axis, ...], point: Point) -> Array:
    values = decays(system, decay, point)
    order = canonical(decay.axes)
    first = [1 + order.index(a) for a in order if a in heads]
    moved = np.moveaxis(values, first, range(1, 1 + len(first)))
    count = math.prod(moved.shape[1 : 1 + len(first)])
    return moved.reshape(len(values), count, -1)


def _with_streams_given(system: System, point: Point) -> tuple[System, Point]:
    """The System with its streams as inputs, so that each token can be taken by itself."""
    asked = replace(system, outputs=())
    values = evaluate(asked, point.inputs, point.params, point.sizes).streams
    moving = [s for s in system.streams if not s.constant]
    inputs = (*system.inputs, *(Tensor(s.name, s.axes, s.field) for s in moving))
    fixed = tuple(s for s in system.streams if s.constant)
    streams = {**point.inputs, **{s.name: values[s.name] for s in moving}}
    return replace(asked, inputs=inputs, streams=fixed), replace(point, inputs=streams)


def _matrix(
    known: tuple[System, Point], stage: Stage, heads: tuple[Axis, ...], fixed: bool
) -> Array:
    """Eigenvalues of a transition that is not diagonal, each token taken as a first one.

    The states of the stage are one vector. What no part of the transition depends on, its value
    channels, repeats the eigenvalues: of these axes one entry is looked at.
    """
    system, point = known
    names = {b.state for b in stage.blocks}
    own = [_alone(b, names) for b in stage.blocks]
    linear = [t for b in own for f in b.chain for t in f.terms]
    maps = [m for t in linear for m in (t.matrix, t.after) if m is not None]
    mixed = {a for t in linear for a in t.over} | {a for m in maps for a in (*m.source, *m.target)}
    mixed |= {a for b in own for a in b.axes if any(a not in x.axes for x in own)}
    seen = {a for t in linear for e in (t.left, t.right) for a in e.axes} | mixed
    units, size = _units(own, point.sizes, mixed)
    asked = replace(system, stages=(replace(stage, blocks=tuple(own)),), outputs=())
    wide = widened(asked, names)
    sizes: Mapping[str, int] = {**point.sizes, BASIS.name: size}
    beside = [a for a in own[0].axes if a in seen and a not in mixed]
    beside = [a for a in beside if a in heads] + [a for a in beside if a not in heads]
    count = math.prod(point.sizes[a.name] for a in beside if a in heads)
    rows = []
    for token in range(1 if fixed else point.tokens):
        now = {n: x[token : token + 1] for n, x in point.inputs.items()}
        finals = evaluate(wide, now, point.params, sizes, units).finals
        parts = []
        for b in own:
            kept = tuple(slice(None) if a in seen else 0 for a in b.axes)
            left = [a for a in b.axes if a in seen]
            order = [left.index(a) for a in (*beside, *(a for a in left if a in mixed))]
            moved = np.transpose(finals[b.state][kept], (*order, len(left)))
            entries = math.prod(point.sizes[a.name] for a in left if a in mixed)
            parts.append(moved.reshape(count, -1, entries, size))
        rows.append(np.linalg.eigvals(np.concatenate(parts, axis=2)).reshape(count, -1))
    return np.real_if_close(np.stack(rows), tol=1000)


def _alone(block: Block, names: set[str]) -> Block:
    """A block without drives, and without what it reads of states that have other names."""
    chain = tuple(Factor(tuple(t for t in f.terms if t.source in names), ()) for f in block.chain)
    return replace(block, chain=chain)


def _units(
    blocks: list[Block], sizes: Mapping[str, int], mixed: set[Axis]
) -> tuple[dict[str, Array], int]:
    """Unit vectors over the axes that a transition mixes, the same along the others, by state."""
    inner = {b.state: [sizes[a.name] if a in mixed else 1 for a in b.axes] for b in blocks}
    size = sum(math.prod(shape) for shape in inner.values())
    out, first = {}, 0
    for b in blocks:
        entries = math.prod(inner[b.state])
        rows = np.eye(size)[first : first + entries].reshape(*inner[b.state], size)
        out[b.state] = np.broadcast_to(rows, (*(sizes[a.name] for a in b.axes), size))
        first += entries
    return out, size
