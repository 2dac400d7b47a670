"""The meaning of a fused plan in float64: that of the plan it expands to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from dsfc.fused.expand import expand
from dsfc.fused.ir import FusedPlan
from dsfc.plan.evaluate import Run
from dsfc.plan.evaluate import evaluate as evaluate_plan

Array = NDArray[Any]


def evaluate(
    fused: FusedPlan,
    inputs: Mapping[str, Array],
    tensors: Mapping[str, Array],
    sizes: Mapping[str, int],
    initial: Mapping[str, Array] | None = None,
) -> Run:
    """Runs what stands in front of the scans, and the scans with what their kernels compute.

    Args:
        fused: the fused plan.
        inputs: `[L, *axes]` by name.
        tensors: parameters and buffers by name, as stored.
        sizes: of every axis, by name.
        initial: initial state tensors, as for `dsfc.plan.evaluate.evaluate`.
    """
    return evaluate_plan(expand(fused), inputs, tensors, sizes, initial)
