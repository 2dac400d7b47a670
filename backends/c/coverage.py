"""Which calls of a mixer run in kernels in C, and why torch runs the others."""

from __future__ import annotations

from dsfc.expr.tree import Field
from dsfc.fused.coverage import ScanCoverage
from dsfc.fused.ir import FusedPlan
from dsfc.plan.scan_ir import Scan

from ..shared.coverage import Loop, coverage_of, why_on_no_target, without_kernels
from .skeletons import scans_with_kernels

SEGMENTS = "kernels in C share out batch, heads and channels, not time"


def coverage(fused: FusedPlan) -> tuple[ScanCoverage, ...]:
    """Returns which calls of each scan of a plan run in kernels in C, in order."""
    known = scans_with_kernels(fused)

    def covered(name: str, loop: Loop) -> ScanCoverage:
        if name not in known:
            return without_kernels(name, "CPU", _why(loop))
        return ScanCoverage(name, "CPU", segments=SEGMENTS)

    return coverage_of(fused.original, "CPU", covered)


def _why(loop: Loop) -> str:
    """Why a scan without kernels has none."""
    if not isinstance(loop, Scan) or why_on_no_target(loop):
        return why_on_no_target(loop)
    if loop.powers:
        return "it sums powers of keys in double precision, which no kernel does"
    if loop.field is Field.COMPLEX:
        return "its states are complex, and no product of keys has complex values or outputs in C"
    return f"no kernel in C fits this scan of the form {loop.form.value}"
