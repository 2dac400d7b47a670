"""Eigenvalues of the transitions of a mixer, and half-lives.

The eigenvalues of a diagonal transition are its diagonal, which `classify` has as an expression;
any other matrix is what one step makes of unit vectors. The eigenvalues of a transition that varies
in time belong to the basis that the state is stored in, its gauge; every spectrum says which.
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
from dsfc.expr.evaluate import canonical
from dsfc.expr.tree import Axis, Expr
from dsfc.structure.classify import classify
from dsfc.structure.ir import Attention
from dsfc.system.evaluate import evaluate
from dsfc.system.ir import Block, Direct, Output, Stage, System
from dsfc.transform.gauge import eta_gauge

Array = NDArray[Any]

EDGES = (0, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1.001, 1.01, 1.1, 2, math.inf)
"""Edges of the bins of |λ|: narrow at 0 and 1, open above."""


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues of the transition of one state.

    Attributes:
        state: its name.
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
    for stage in system.stages:
        for block in stage.blocks:
            kind = kinds.block(block.state)
            if kind.cell.diagonal and kind.decay is not None:
                values = _diagonal(system, kind.decay.value, kind.heads, point)
            else:
                values = _matrix(system, stage, block, point, kind.heads, kind.transition_fixed)
            # The first token has no normaliser before it: its Λ has no meaning in that gauge.
            fixed = bool((values == values[:1]).all())
            out.append(Spectrum(block.state, paper, values[:1] if fixed else values[paper:]))
    return tuple(out)


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


def _matrix(
    system: System,
    stage: Stage,
    block: Block,
    point: Point,
    heads: tuple[Axis, ...],
    fixed: bool,
) -> Array:
    """Eigenvalues of a transition that is not diagonal, each token taken as a first one.

    What no part of the transition depends on, its value channels, repeats the eigenvalues: of these
    axes one entry is looked at.
    """
    linear = [t for f in block.chain for t in f.terms]
    maps = [m for t in linear for m in (t.matrix, t.after) if m is not None]
    mixed = {a for t in linear for a in t.over} | {a for m in maps for a in (*m.source, *m.target)}
    seen = {a for t in linear for e in (t.left, t.right) for a in e.axes} | mixed
    shape = [point.sizes[a.name] for a in block.axes]
    units, size = _units(block.axes, shape, mixed)
    alone = replace(block, chain=tuple(replace(f, drives=()) for f in block.chain))
    asked = replace(system, stages=(replace(stage, blocks=(alone,)),), outputs=())
    wide = widened(asked, (block.state,))
    kept = tuple(slice(None) if a in seen else 0 for a in block.axes)
    left = [a for a in block.axes if a in seen]
    rows = []
    for token in range(1 if fixed else point.tokens):
        now = {n: x[token : token + 1] for n, x in point.inputs.items()}
        sizes: Mapping[str, int] = {**point.sizes, BASIS.name: size}
        after = evaluate(wide, now, point.params, sizes, {block.state: units})
        column = after.finals[block.state][kept]
        order = [k for k, a in enumerate(left) if a in heads and a not in mixed]
        order += [k for k, a in enumerate(left) if a not in heads and a not in mixed]
        order += [k for k, a in enumerate(left) if a in mixed]
        moved = np.transpose(column, (*order, len(left)))
        count = math.prod(point.sizes[a.name] for a in left if a in heads and a not in mixed)
        matrices = moved.reshape(count, -1, size, size)
        rows.append(np.linalg.eigvals(matrices).reshape(count, -1))
    return np.real_if_close(np.stack(rows), tol=1000)


def _units(axes: tuple[Axis, ...], shape: list[int], mixed: set[Axis]) -> tuple[Array, int]:
    """Unit vectors over the axes that a transition mixes, the same along the others."""
    size = math.prod(n for a, n in zip(axes, shape, strict=True) if a in mixed)
    inner = [n if a in mixed else 1 for a, n in zip(axes, shape, strict=True)]
    return np.broadcast_to(np.eye(size).reshape(*inner, size), (*shape, size)), size
