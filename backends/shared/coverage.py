"""Which calls of a mixer run in kernels, scan by scan, and why torch runs the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from dsfc.fused.coverage import ScanCoverage
from dsfc.plan.ir import Plan
from dsfc.plan.pairs_ir import AllPairs
from dsfc.plan.recurrence_ir import Recurrence
from dsfc.plan.scan_ir import Scan

NO_RECURRENCE = "no recurrence"
"""Why no kernel of a target runs attention, or a sum over the last tokens."""

Loop = Scan | Recurrence | AllPairs
"""A kernel of a plan that goes over time; kernels of a target run it, or torch does."""


def without_kernels(scan: str, device: str, why: str) -> ScanCoverage:
    """Returns the coverage of a scan that torch runs in every call."""
    return ScanCoverage(scan, device, why, why, why, why, why)


def coverage_of(
    plan: Plan, device: str, of: Callable[[str, Loop], ScanCoverage]
) -> tuple[ScanCoverage, ...]:
    """Returns the coverage of a plan, in order.

    Args:
        plan: the plan.
        device: where kernels run.
        of: gives the coverage of a scan or loop, of its name and itself.
    """
    scans = tuple(of(name, loop) for name, loop in loops(plan).items())
    return scans or (without_kernels("", device, NO_RECURRENCE),)


def loops(plan: Plan) -> Mapping[str, Loop]:
    """Returns the scans and loops of a plan by name, in order."""
    kernels = (k for k in plan.kernels if isinstance(k, Scan | Recurrence | AllPairs))
    return {k.output if isinstance(k, AllPairs) else k.name: k for k in kernels}


def why_on_no_target(loop: Loop) -> str:
    """Returns why no target has kernels of a loop; empty where some target may have them."""
    if isinstance(loop, Recurrence):
        return "its update is no scan, so tokens are stepped one after the other"
    if isinstance(loop, AllPairs):
        return "it has no finite state, and sums over all pairs of tokens"
    if loop.transition is not None:
        return "its Λ is a full matrix, and kernels have one λ for each entry of the state"
    return ""


def said_of_scans(coverage: Iterable[ScanCoverage]) -> str:
    """Returns which scans no kernel runs, and why, as a clause; empty where kernels run all."""
    names: dict[str, list[str]] = {}
    for c in coverage:
        if c.forward:
            names.setdefault(c.forward, []).append(c.scan)
    return "; ".join(
        f"no kernel for {', '.join(n)}: {why}" if any(n) else why for why, n in names.items()
    )
