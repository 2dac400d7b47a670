"""A self-test of a plan and of its gauge: values beside the System's, on numbers, at every compile.

The two are evaluated by interpreters that share nothing but the primitives, over four tokens and
from states that are not zero. One sample says nothing of all inputs, and needs not: a plan that
computes another function differs at almost every point.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsfc.plan.evaluate import evaluate as evaluate_plan
from dsfc.plan.flow import PlanError
from dsfc.plan.ir import Plan
from dsfc.system.evaluate import evaluate as evaluate_system
from dsfc.system.ir import MaxPlus, System

Array = NDArray[Any]

LENGTH = 4
"""Tokens: enough for a value to enter a state, to decay twice and to be read before an update."""

TOLERANCE = 1e-9
"""Of the largest value; rounding in float64 leaves some 1e-15 over four tokens."""

_NUDGE = 1e-13
"""A relative change of all arguments, a thousand roundings."""

_AMPLIFIED = 1e3
"""How many times more than by the nudge a plan may differ where rounding is amplified."""


@dataclass(frozen=True, slots=True)
class Point:
    """Arguments of a mixer.

    Attributes:
        inputs: `[L, *axes]` by name.
        tensors: parameters and buffers by name, as stored.
        initial: states before the first token, `[*axes]` by name.
        sizes: of every axis, copies included.
    """

    inputs: Mapping[str, Array]
    tensors: Mapping[str, Array]
    initial: Mapping[str, Array]
    sizes: Mapping[str, int]


def starts(system: System, sizes: Mapping[str, int], seed: int) -> dict[str, Array]:
    """Returns positive initial values for all states of a System, `[*axes]` by name.

    Maxima that the spec declares are states too.

    Args:
        system: the System.
        sizes: of every axis.
        seed: the same seed gives the same values.
    """
    generator = np.random.default_rng([seed, 1])
    held = {b.state: b.axes for b in system.blocks}
    maxima = (s for s in system.streams if isinstance(s.value, MaxPlus) and s.value.declared)
    held |= {s.name: s.axes for s in maxima}
    return {
        name: 0.5 + generator.random([sizes[a.name] for a in axes]) for name, axes in held.items()
    }


def compare(plan: Plan, system: System, points: Iterable[Point]) -> None:
    """Checks that a plan computes what its System computes: the output and the last states.

    Points are taken in turn until the output has a finite entry at one. Entries that are not finite
    are not compared: where the definition is undefined, a plan may have any value.

    Args:
        plan: the plan.
        system: what it was made of.
        points: where to evaluate both, drawn as they are asked for.

    Raises:
        PlanError: they differ by more than rounding explains.
    """
    with np.errstate(all="ignore"):
        for point in points:
            want = _of_system(system, point)
            got = _of_plan(plan, point)
            compare_values("plan", "system", want, got, partial(_of_system, system, nudged(point)))
            if np.isfinite(want[plan.result]).any():
                return


def compare_gauges(system: System, computed: System, points: Iterable[Point]) -> None:
    """Checks that a System in another gauge has the outputs of the first, from states of 0.

    States differ by the gauge, so that both start from none. Where the first has a finite output,
    the second must have one too.

    Args:
        system: the System as it was derived.
        computed: the System that is planned.
        points: where to evaluate both; their initial states are left out.

    Raises:
        PlanError: they differ by more than rounding explains.
    """
    with np.errstate(all="ignore"):
        for point in points:
            start = replace(point, initial={})
            want, got = _outputs(system, start), _outputs(computed, start)
            compare_values("gauge", "system", want, got, partial(_outputs, system, nudged(start)))
            if all(np.isfinite(y).any() for y in want.values()):
                return


def compare_values(
    what: str,
    like: str,
    want: Mapping[str, Array],
    got: Mapping[str, Array],
    nudged: Callable[[], Mapping[str, Array]],
) -> None:
    """Checks that values are others but for rounding, where those are finite.

    Args:
        what: what gave the values, for messages.
        like: what gave the others.
        want: the others, by name.
        got: the values, by name.
        nudged: gives the others for arguments that differ by the nudge.

    Raises:
        PlanError: they differ by more than rounding explains.
    """
    off = {name: error for name in got if (error := _error(got[name], want[name])) > TOLERANCE}
    if not off:
        return
    moved = nudged()
    for name, error in off.items():
        # What rounding is amplified to is seen by rounding the arguments.
        if not error <= _AMPLIFIED * _error(moved[name], want[name]):
            raise PlanError(f"the {what} differs from the {like}: {name} by {error:.3g}")


def _error(got: Array, want: Array) -> float:
    """The largest difference where `want` is finite, relative to its largest value."""
    if got.shape != want.shape:
        return np.inf
    known = np.isfinite(want)
    if not known.any():
        return 0.0
    error = np.abs(got - want)[known].max() / max(1.0, np.abs(want[known]).max())
    return float(error) if np.isfinite(error) else np.inf


def _of_system(system: System, at: Point) -> dict[str, Array]:
    out = evaluate_system(system, at.inputs, at.tensors, at.sizes, at.initial)
    (y,) = system.outputs
    return {f"state {n}": v for n, v in out.finals.items()} | {y.name: out.outputs[y.name]}


def _outputs(system: System, at: Point) -> dict[str, Array]:
    out = evaluate_system(system, at.inputs, at.tensors, at.sizes, at.initial)
    return {y.name: out.outputs[y.name] for y in system.outputs}


def _of_plan(plan: Plan, at: Point) -> dict[str, Array]:
    out = evaluate_plan(plan, at.inputs, at.tensors, at.sizes, at.initial)
    finals = {f"state {n}": v for n, v in out.finals.items()}
    return finals | {plan.result: out.arrays[plan.output]}


def nudged(at: Point) -> Point:
    """Returns the point with every number changed by the nudge, up and down in turn."""

    def of(values: Mapping[str, Array]) -> dict[str, Array]:
        return {n: v * (1 + _NUDGE * _signs(v)) for n, v in values.items()}

    return replace(at, inputs=of(at.inputs), tensors=of(at.tensors), initial=of(at.initial))


def _signs(values: Array) -> Array:
    return np.asarray((-1.0) ** np.arange(values.size)).reshape(values.shape)
