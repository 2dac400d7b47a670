"""A self-test of a fused plan: its values beside those of its plan, at every compile."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import numpy as np

from dsfc.fused.evaluate import evaluate
from dsfc.fused.ir import FusedPlan
from dsfc.plan.evaluate import Run
from dsfc.plan.evaluate import evaluate as evaluate_plan
from dsfc.plan.ir import Plan
from dsfc.plan.self_test import Array, Point, compare_values, nudged


def compare(fused: FusedPlan, points: Iterable[Point]) -> None:
    """Checks that a fused plan computes what its plan computes: the output and the last states.

    Points are taken in turn until the output has a finite entry at one.

    Args:
        fused: the fused plan.
        points: where to evaluate both, drawn as they are asked for.

    Raises:
        PlanError: they differ by more than rounding explains.
    """
    if not fused.fused_scans:
        return
    plan = fused.original
    with np.errstate(all="ignore"):
        for point in points:
            at = (point.inputs, point.tensors, point.sizes, point.initial)
            want, got = _of_plan(plan, point), _values(plan, evaluate(fused, *at))
            compare_values("fused plan", "plan", want, got, partial(_of_plan, plan, nudged(point)))
            if np.isfinite(want[plan.output]).any():
                return


def _of_plan(plan: Plan, at: Point) -> dict[str, Array]:
    return _values(plan, evaluate_plan(plan, at.inputs, at.tensors, at.sizes, at.initial))


def _values(plan: Plan, run: Run) -> dict[str, Array]:
    finals = {f"state {n}": v for n, v in run.finals.items()}
    return finals | {plan.output: run.arrays[plan.output]}
