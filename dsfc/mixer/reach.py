"""What the output of a mixer reaches; the rest is not part of it.

An output that reaches no input keeps the first that is declared: the tensor that a module takes
says how many sequences and tokens there are.
"""

from __future__ import annotations

from dataclasses import replace

from dsfc.expr.declarations import Dimension
from dsfc.expr.graph import reachable
from dsfc.expr.tree import Axis
from dsfc.mixer.axes import size_axes, used_axes
from dsfc.mixer.ir import Mixer
from dsfc.mixer.reads import mentions


def reached(mixer: Mixer) -> Mixer:
    """Returns the mixer without what its output does not reach."""
    kept = reachable(mentions(mixer), [mixer.output])
    small = replace(
        mixer,
        inputs=tuple(t for t in mixer.inputs if t.name in kept) or mixer.inputs[:1],
        params=tuple(t for t in mixer.params if t.name in kept),
        buffers=tuple(t for t in mixer.buffers if t.name in kept),
        abstracts=tuple(a for a in mixer.abstracts if a.name in kept),
        definitions=tuple(d for d in mixer.definitions if d.name in kept),
        states=tuple(s for s in mixer.states if s.name in kept),
    )
    return replace(small, axes=_reached_axes(small))


def _reached_axes(mixer: Mixer) -> tuple[Dimension, ...]:
    by_axis = {d.axis: d for d in mixer.axes}
    kept: set[Axis] = set()
    stack = list(used_axes(mixer))
    while stack:
        axis = stack.pop()
        if axis not in kept:
            kept.add(axis)
            stack.extend(size_axes(by_axis[axis]))
    return tuple(d for d in mixer.axes if d.axis in kept)
