"""Eigenvalues of Λ_i of a mixer as its emitted module starts: parameters as drawn, random tokens.

A diagonal transition is evaluated as the expression that the structure gives for it. Any other is
applied to unit vectors, over the axes that it mixes, and its eigenvalues are computed.
"""

from __future__ import annotations

import inspect
import itertools
import math
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dsfc.api.pipeline import Compilation
from dsfc.emit.importing import import_module
from dsfc.emit.module import write
from dsfc.expr.declarations import MapTensor
from dsfc.expr.evaluate import canonical
from dsfc.expr.tree import Expr
from dsfc.structure.classify import classify
from dsfc.system.evaluate import evaluate
from dsfc.system.ir import Block, Direct, Output, Stage, System
from dsfc.transform.gauge import eta_gauge

if TYPE_CHECKING:
    from dsfc.validate.surface import Surface

WIDTH, SIZE, TOKENS = 64, 16, 32
"""The axis d, other axes that have no size of their own, and how many tokens are drawn."""

Array = NDArray[Any]


@dataclass(frozen=True)
class Start:
    """A module as it starts, and tokens for it.

    Attributes:
        sizes: of all axes, by name.
        inputs: `[L, *axes]` by name.
        params: parameters and buffers by name.
    """

    sizes: Mapping[str, int]
    inputs: Mapping[str, Array]
    params: Mapping[str, Array]


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues of the transition of one state.

    Attributes:
        state: its name.
        paper: whether in the paper's gauge, where Λ_i holds the ratio of normalisers.
        values: `[tokens, eigenvalues]`; one token where Λ is the same at all.
    """

    state: str
    paper: bool
    values: Array


def start(it: Compilation, tokens: int = TOKENS) -> Start:
    """Returns a mixer's module as it starts, with standard normal tokens, all from seed 0.

    Args:
        it: the mixer.
        tokens: L.

    Raises:
        DiagnosticError: no module is written for it.
    """
    import torch  # where there is none, a start may come from elsewhere

    from dsfc.validate.surface import Sample, surface

    text = it.module()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{text.mixer}.py"
        write(text, file, False)
        module = import_module(file)
    found = surface(module, _sizes(module, text.class_name))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        layer = found.cls(**found.sizes, dtype=torch.float64)
        drawn = {n: torch.randn(1, tokens, *axes).double() for n, axes in found.inputs.items()}
    with torch.no_grad():
        values = found.values(Sample(layer, drawn))
    stored = [*it.system.params, *it.system.buffers]
    names = [n for n in found.arguments if n not in found.inputs and n not in found.states]
    params = {t.name: values[n].detach().numpy() for t, n in zip(stored, names, strict=True)}
    return Start(
        _axes(it.system, params, found),
        {n: x[0].numpy() for n, x in drawn.items()},
        params,
    )


def spectra(it: Compilation, begun: Start) -> tuple[Spectrum, ...]:
    """Returns the spectrum of every state, then those that the paper's gauge changes.

    Args:
        it: the mixer.
        begun: its module as it starts.
    """
    lowered = _spectra(it.system, begun, False)
    paper, _ = eta_gauge(it.system)
    if paper == it.system:
        return lowered
    before = {s.state: s.values for s in lowered}
    changed = _spectra(paper, begun, True)
    return lowered + tuple(p for p in changed if not _same(p.values, before[p.state]))


def _same(paper: Array, lowered: Array) -> bool:
    """Whether two spectra are equal up to rounding, at the tokens that both have."""
    shown = lowered[-len(paper) :]
    return paper.shape[1:] == shown.shape[1:] and np.allclose(paper, shown, rtol=1e-9, atol=0)


def _sizes(module: Any, cls: str) -> dict[str, int]:  # noqa: ANN401 - an emitted module
    """Sizes of the axes that a class has no default for."""
    declared = inspect.signature(getattr(module, cls)).parameters.values()
    return {p.name: WIDTH if p.name == "d" else SIZE for p in declared if p.default is p.empty}


def _axes(system: System, params: Mapping[str, Array], found: Surface) -> dict[str, int]:
    """Sizes of all axes: those that the class takes, and what the parameters have."""
    sizes = dict(found.sizes)
    for t in (*system.params, *system.buffers):
        if isinstance(t, MapTensor):
            axes = (*t.map.each, *t.map.target, *t.map.source)
        else:
            axes = t.axes
        sizes |= {a.name: n for a, n in zip(axes, params[t.name].shape, strict=True)}
    for t in system.inputs:
        sizes |= {a.name: n for a, n in zip(t.axes, found.inputs[t.name], strict=True)}
    return sizes


def _spectra(system: System, begun: Start, paper: bool) -> tuple[Spectrum, ...]:
    out = []
    kinds = classify(system)
    for stage in system.stages:
        for block in stage.blocks:
            kind = kinds.block(block.state)
            if kind.cell.diagonal and kind.decay is not None:
                values = _diagonal(system, kind.decay.value, begun)
            else:
                values = _matrix(system, stage, block, begun, kind.transition_fixed)
            # The first token has no normaliser before it: its Λ has no meaning in that gauge.
            fixed = bool((values == values[:1]).all())
            out.append(Spectrum(block.state, paper, values[:1] if fixed else values[paper:]))
    return tuple(out)


def _diagonal(system: System, decay: Expr, begun: Start) -> Array:
    """The diagonal at every token, `[L, entries]`."""
    wanted = Output("decay", Direct(decay), canonical(decay.axes), decay.field)
    asked = replace(system, outputs=(wanted,))
    found = evaluate(asked, begun.inputs, begun.params, begun.sizes)
    values: Array = found.outputs["decay"]
    return values.reshape(len(values), -1)


def _matrix(system: System, stage: Stage, block: Block, begun: Start, fixed: bool) -> Array:
    """Eigenvalues of a transition that is not diagonal, `[L, eigenvalues]`.

    Each token is taken as the first of a sequence, behind a unit vector for a state.
    """
    terms = [t for f in block.chain for t in f.terms]
    maps = [m for t in terms for m in (t.matrix, t.after) if m is not None]
    mixed = {a for t in terms for a in t.over} | {a for m in maps for a in (*m.source, *m.target)}
    order = [k for k, a in enumerate(block.axes) if a in mixed]
    shape = [begun.sizes[a.name] for a in block.axes]
    alone = replace(block, chain=tuple(replace(f, drives=()) for f in block.chain))
    asked = replace(system, stages=(replace(stage, blocks=(alone,)),), outputs=())
    # What no part of the transition depends on, its value channels, repeats the eigenvalues.
    seen = {a for t in terms for e in (t.left, t.right) for a in e.axes} | mixed
    kept = tuple(slice(None) if a in seen else 0 for a in block.axes)
    places = [k for k, a in enumerate(a for a in block.axes if a in seen) if a in mixed]
    rows = []
    for token in range(1 if fixed else next(iter(begun.inputs.values())).shape[0]):
        now = {n: x[token : token + 1] for n, x in begun.inputs.items()}
        columns = []
        for unit in itertools.product(*(range(shape[k]) for k in order)):
            given = np.zeros(shape)
            given[tuple(dict(zip(order, unit, strict=True)).get(k, slice(None))
                        for k in range(len(shape)))] = 1.0  # fmt: skip
            after = evaluate(asked, now, begun.params, begun.sizes, {block.state: given})
            column = after.finals[block.state][kept]
            last = range(-len(places), 0)
            moved = np.moveaxis(column, places, list(last))
            columns.append(moved.reshape(*moved.shape[: moved.ndim - len(places)], -1))
        rows.append(np.linalg.eigvals(np.stack(columns, -1)).reshape(-1))
    return np.real_if_close(np.stack(rows), tol=1000)


def memory(values: Array) -> tuple[float, float, float]:
    """Returns in how many tokens half of what is stored is gone: the 5th, 50th and 95th percentile.

    Args:
        values: eigenvalues; those of modulus 1 or more forget nothing, which is infinity.
    """
    with np.errstate(divide="ignore"):
        log = np.log(np.abs(values).reshape(-1))
        lives = np.where(log < -1e-12, -math.log(2) / np.minimum(log, -1e-12), math.inf)
    low, middle, high = np.percentile(lives, (5, 50, 95), method="nearest")
    return float(low), float(middle), float(high)
