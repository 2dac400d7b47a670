"""Random arrays to run a plan on, and the System that it came from."""

from __future__ import annotations

from dsfc.api.pipeline import Compilation
from dsfc.mixer import sample
from dsfc.mixer.sample import small_sizes
from dsfc.plan.self_test import Point, starts


def draw(spec: Compilation, length: int, seed: int = 0) -> Point:
    """Returns random arguments; every axis has a small size of its own, if it may."""
    known = small_sizes(spec.mixer)
    for d in spec.computed.axes:
        known.setdefault(d.axis.name, known[d.axis.copy_of or d.axis.name])
    drawn = sample(spec.mixer, known, seed, length)
    return Point(drawn.inputs, drawn.params, starts(spec.computed, known, seed), known)
