"""Random arrays to run a plan on, and the System that it came from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dsfc.diagnostics.report import DiagnosticError
from dsfc.mixer import sample, sizes
from dsfc.pipeline import Compilation


@dataclass(frozen=True)
class Material:
    """Random arguments of a plan, and of the System that it came from.

    Attributes:
        inputs: `[L, *axes]`.
        tensors: parameters and buffers.
        initial: states before the first token.
        sizes: of every axis.
    """

    inputs: dict[str, np.ndarray]
    tensors: dict[str, np.ndarray]
    initial: dict[str, np.ndarray]
    sizes: dict[str, int]


def draw(spec: Compilation, length: int, seed: int = 0) -> Material:
    """Returns random arguments; every axis has a small size of its own, if it may."""
    axes = [d.axis.name for d in spec.mixer.axes]
    try:
        known = sizes(spec.mixer, {name: 2 + k % 3 for k, name in enumerate(axes)})
    except DiagnosticError:  # some must be equal
        known = sizes(spec.mixer, dict.fromkeys(axes, 3))
    known = dict(known)
    for d in spec.system.axes:
        known.setdefault(d.axis.name, known[d.axis.copy_of or d.axis.name])
    drawn = sample(spec.mixer, known, seed, length)
    rng = np.random.default_rng([seed, 1])
    initial = {
        b.state: 0.5 + rng.random([known[a.name] for a in b.axes]) for b in spec.system.blocks
    }
    return Material(drawn.inputs, drawn.params, initial, known)
