"""Plan → fused plan: the passes in order, and the verifier behind them."""

from __future__ import annotations

from collections.abc import Callable

from dsfc.expr.tree import Field, Prim
from dsfc.fused.ir import FusedPlan
from dsfc.fused.prologue import fuse_prologue
from dsfc.fused.prologue_epilogue import fuse_prologue_epilogue
from dsfc.fused.verify import verify
from dsfc.plan.ir import Plan
from dsfc.plan.scan_ir import Scan

_PASSES = (fuse_prologue, fuse_prologue_epilogue)


def every_real_function(primitive: Prim) -> bool:
    """Whether a primitive is a real function of real numbers: a kernel of some target has it."""
    return all(e.field is Field.REAL for e in (primitive, *primitive.args))


def fuse(plan: Plan, computes: Callable[[Prim], bool] | None = every_real_function) -> FusedPlan:
    """Returns what the kernels of a plan's scans compute besides their recurrences, verified.

    No kernel sums products of keys in double precision: if a scan of the plan does, no scan is
    fused.

    Args:
        plan: the plan.
        computes: whether the kernels of a target compute a primitive; others are left in front of
            the scan. None for a target whose kernels compute nothing but recurrences.

    Raises:
        PlanError: a pass broke an invariant.
    """
    fused = FusedPlan(plan, plan)
    powers = any(isinstance(k, Scan) and k.powers for k in plan.kernels)
    if computes is None or powers:
        return fused
    for run in _PASSES:
        fused = run(fused, computes)
    verify(fused)
    return fused
