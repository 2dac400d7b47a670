"""Where a mixer is analysed: sizes, parameters as they start or as given, and tokens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsfc.diagnostics.catalogue import NoReport
from dsfc.diagnostics.report import DiagnosticError
from dsfc.expr.build import rewrite
from dsfc.expr.declarations import MapTensor, Tensor
from dsfc.expr.distributions import distribution
from dsfc.expr.evaluate import NamedArray, canonical, dtype_of, evaluate
from dsfc.expr.starts import initialiser
from dsfc.expr.tree import Axis, Draw, Expr, Field
from dsfc.mixer.axes import sizes
from dsfc.mixer.ir import Mixer
from dsfc.mixer.rules.initial_values import SizeScope
from dsfc.source import NOWHERE
from dsfc.system.ir import System
from dsfc.system.traverse import stored_axes

Array = NDArray[Any]

SMALL = ((16, 2, 4), (16, 2, 8), (32, 2, 4), (16, 1, 16), (64, 2, 16), (8, 8, 8), (4, 4, 4))
"""Sizes tried for the axis d, for axes of heads, and for others, until they fit together."""

LAYER = ((512, 8, 64), (512, 8, 512), (64, 8, 8), (64, 64, 64), *SMALL)
"""Sizes tried for a layer as it is trained, which is counted and not run."""


@dataclass(frozen=True)
class Point:
    """A mixer's sizes, parameters and tokens.

    Attributes:
        sizes: of all axes, by name.
        inputs: `[L, *axes]` by name.
        params: parameters and buffers by name, as they are stored: tensors `[*axes]`, maps
            `[*each, *target, *source]`.
    """

    sizes: Mapping[str, int]
    inputs: Mapping[str, Array]
    params: Mapping[str, Array]

    @property
    def tokens(self) -> int:
        """How many tokens there are."""
        return int(next(iter(self.inputs.values())).shape[0])


def start(
    mixer: Mixer,
    system: System,
    tokens: int,
    chosen: Mapping[str, int] | None = None,
    seed: int = 0,
    tried: Sequence[tuple[int, int, int]] = SMALL,
) -> Point:
    """Returns a mixer with the parameters that its spec starts from, and standard normal tokens.

    Args:
        mixer: the mixer.
        system: its System, whose derivation may have added axes.
        tokens: L.
        chosen: sizes by name of the axis; small ones that fit them where left out.
        seed: the same seed gives the same numbers.
        tried: as for `fitting_sizes`.

    Raises:
        DiagnosticError: E-DIM, sizes that do not fit the mixer; E-REPORT, it has an abstract map,
            which has no values.
    """
    if mixer.abstracts:
        function = mixer.abstracts[0]
        problem = f"`{function.name}` is an abstract map, so there is nothing to compute"
        place = function.span or NOWHERE
        raise DiagnosticError((NoReport(place, mixer=system.name, problem=problem),))
    known = fitting_sizes(mixer, system, chosen or {}, tried)
    generator = np.random.default_rng(seed)
    params = {t.name: _initial(t, known, generator) for t in (*mixer.params, *mixer.buffers)}
    return tokens_of(mixer, Point(known, {}, params), tokens, seed)


def tokens_of(mixer: Mixer, point: Point, tokens: int, seed: int) -> Point:
    """Returns a point with fresh standard normal tokens.

    Args:
        mixer: the mixer.
        point: its sizes and parameters.
        tokens: L.
        seed: the same seed gives the same tokens.
    """
    generator = np.random.default_rng((seed, 1))
    inputs = {}
    for t in mixer.inputs:
        shape = (tokens, *(point.sizes[a.name] for a in t.axes))
        drawn: Array = generator.standard_normal(shape)
        if t.field is Field.COMPLEX:
            drawn = drawn + 1j * generator.standard_normal(shape)
        inputs[t.name] = drawn
    return replace(point, inputs=inputs)


def fitting_sizes(
    mixer: Mixer,
    system: System,
    chosen: Mapping[str, int],
    tried: Sequence[tuple[int, int, int]] = SMALL,
) -> dict[str, int]:
    """Returns the size of every axis: those chosen, those of the spec, and ones that fit them.

    Args:
        mixer: the mixer.
        system: its System.
        chosen: sizes by name of the axis.
        tried: sizes for d, for axes of heads and for others, in the order of preference.

    Raises:
        DiagnosticError: E-DIM; none of the sizes tried fits.
    """
    problem: DiagnosticError | None = None
    for choice in _choices(mixer, chosen, tried):
        try:
            known = sizes(mixer, choice)
        except DiagnosticError as e:
            problem = problem or e
            continue
        copies = (d.axis for d in system.axes if d.axis.copy_of is not None)
        return known | {a.name: known[a.copy_of] for a in copies if a.copy_of in known}
    assert problem is not None
    raise problem


def _choices(
    mixer: Mixer, chosen: Mapping[str, int], tried: Sequence[tuple[int, int, int]]
) -> Iterator[dict[str, int]]:
    free = [d.axis for d in mixer.axes if d.size is None and d.axis.name not in chosen]
    for width, heads, rest in tried:
        yield {a.name: width if a.name == "d" else heads if a.heads else rest for a in free} | dict(
            chosen
        )


def _initial(
    tensor: Tensor | MapTensor, known: Mapping[str, int], generator: np.random.Generator
) -> Array:
    """The array that a parameter or buffer starts from, as it is stored."""
    axes = stored_axes(tensor)
    # A map may have one axis on both sides; its draws then stand along two axes of their own.
    twice = len(set(axes)) < len(axes)
    places = tuple(Axis(10**8 + k, f"{k}") for k in range(len(axes))) if twice else axes
    named = {a.name: known[b.name if b.name in known else b.copy_of or b.name]
             for a, b in zip(places, axes, strict=True)}  # fmt: skip
    scope = _Draws({**known, **named}, places, generator)
    over = frozenset(places)

    def placed(e: Expr) -> Expr | None:
        whole = isinstance(e, Draw) and distribution(e.distribution).sequence is None
        return replace(e, over=over) if isinstance(e, Draw) and whole else None

    value = evaluate(rewrite(initialiser(tensor).value, placed), scope)
    order = canonical(places)
    field = tensor.map.field if isinstance(tensor, MapTensor) else tensor.field
    full = value.expand(order, scope.size).data.astype(dtype_of(field))
    return np.ascontiguousarray(np.transpose(full, [order.index(a) for a in places]))


@dataclass(frozen=True, slots=True)
class _Draws(SizeScope):
    """The leaves of an initialiser, with draws."""

    places: tuple[Axis, ...]
    generator: np.random.Generator

    def node(self, expr: Expr) -> NamedArray:
        """The value of a draw, or of a sequence along an axis."""
        row = distribution(expr.distribution) if isinstance(expr, Draw) else None
        if not isinstance(expr, Draw) or row is None or row.draw is None:
            return SizeScope.node(self, expr)
        shape = tuple(self.size(a) for a in self.places)
        numbers = [float(evaluate(arg, self).data) for arg in expr.args]
        drawn = row.draw(self.generator, shape, *numbers)
        order = canonical(self.places)
        return NamedArray(order, np.transpose(drawn, [self.places.index(a) for a in order]))
