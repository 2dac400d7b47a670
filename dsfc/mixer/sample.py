"""Random arrays for a mixer that keep its declarations' promises, for tests and comparisons."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsfc.diagnostics.report import DiagnosticError
from dsfc.expr.declarations import Constraint, MapTensor, Tensor
from dsfc.expr.evaluate import dtype_of, evaluate
from dsfc.expr.tree import Axis, Expr, Field
from dsfc.mixer.axes import sizes
from dsfc.mixer.ir import Mixer
from dsfc.mixer.rules.initial_values import SizeScope

Array = NDArray[Any]
_SCALE = 0.6  # keeps exponentials of projections within a few units over tens of tokens


@dataclass(frozen=True, slots=True)
class Sample:
    """Arguments of `dsfc.mixer.evaluate`.

    Attributes:
        inputs: `[L, *axes]` by name.
        params: parameters and buffers, `[*axes]` or `[*each, *target, *source]`.
        initial: states before the first token, `[*axes]`.
    """

    inputs: dict[str, Array]
    params: dict[str, Array]
    initial: dict[str, Array]


def small_sizes(mixer: Mixer, shapes: Iterable[Iterable[Axis]] = ()) -> dict[str, int]:
    """Returns small sizes for the axes of a mixer: different ones, unless some must be equal.

    Args:
        mixer: the mixer.
        shapes: axes of arrays that will be made, copies of its axes among them. Where one of these
            had more than `LARGEST` entries, all sizes are 2, or 1.
    """
    axes = [d.axis.name for d in mixer.axes]
    drawn_axes = list(shapes)
    choices = (
        {a: 2 + k % 3 for k, a in enumerate(axes)},
        *(dict.fromkeys(axes, n) for n in (3, 2)),
    )
    for choice in choices:
        with suppress(DiagnosticError):
            known = sizes(mixer, choice)
            if all(prod(known[a.copy_of or a.name] for a in m) <= LARGEST for m in drawn_axes):
                return known
    return sizes(mixer, dict.fromkeys(axes, 1))


LARGEST = 4096
"""Entries of an array of a sample."""


def sample(mixer: Mixer, sizes: Mapping[str, int], seed: int, length: int = 5) -> Sample:
    """Returns random inputs, parameters and initial states; a buffer has the value it is given.

    Args:
        mixer: the mixer.
        sizes: size of every axis by name.
        seed: the same seed gives the same arrays.
        length: number of tokens.
    """
    draws = _Draws(np.random.default_rng(seed), sizes)
    inputs = {t.name: draws.tensor(t, length) for t in mixer.inputs}
    params = {
        t.name: draws.map(t) if isinstance(t, MapTensor) else draws.tensor(t)
        for t in (*mixer.params, *mixer.buffers)
    }
    for t in mixer.buffers:
        if t.init is not None and not t.init.drawn:
            params[t.name] = _fixed(t, t.init.value, sizes)
    initial = {s.name: draws.plain(s.axes, s.field) for s in mixer.states}
    return Sample(inputs, params, initial)


def _fixed(tensor: Tensor | MapTensor, value: Expr, sizes: Mapping[str, int]) -> Array:
    """The value of a buffer as it is stored; what is derived may rest on it."""
    scope = SizeScope(sizes)
    if isinstance(tensor, MapTensor):
        map_ = tensor.map
        shape = [sizes[a.name] for a in (*map_.each, *map_.target, *map_.source)]
        return np.broadcast_to(evaluate(value, scope).data, shape).copy()
    array = evaluate(value, scope).expand(tensor.axes, scope.size).data
    return array.astype(dtype_of(tensor.field))


class _Draws:
    """Draws arrays one after the other."""

    def __init__(self, generator: np.random.Generator, sizes: Mapping[str, int]) -> None:
        self._generator = generator
        self._sizes = sizes

    def plain(self, axes: tuple[Axis, ...], field: Field, *lead: int) -> Array:
        """Normal entries."""
        shape = (*lead, *(self._sizes[a.name] for a in axes))
        real = self._generator.normal(0, _SCALE, shape)
        if field is Field.REAL:
            return real
        return np.asarray((real + 1j * self._generator.normal(0, _SCALE, shape)) / np.sqrt(2))

    def map(self, tensor: MapTensor) -> Array:
        """The stored array of a linear map."""
        map_ = tensor.map
        return self.plain((*map_.each, *map_.target, *map_.source), map_.field)

    def tensor(self, tensor: Tensor, *lead: int) -> Array:
        """Entries that keep the tensor's constraint, well away from its edge."""
        value = self.plain(tensor.axes, tensor.field, *lead)
        match tensor.constraint:
            case Constraint.NONE:
                return value
            case Constraint.POSITIVE:
                return np.abs(value) + 0.3
            case Constraint.NONNEG:
                return np.abs(value)
            case Constraint.UNIT:
                return 0.1 + 0.8 / (1 + np.exp(-value))
            case Constraint.NONZERO:
                size = np.abs(value)
                return np.asarray(value / size * (size + 0.4))
