"""Which calls of a mixer run in kernels for GPUs, and why torch runs the others."""

from __future__ import annotations

from dsfc.expr.tree import Field
from dsfc.fused.coverage import ScanCoverage
from dsfc.fused.ir import FusedPlan
from dsfc.fused.real_imag import can_split, has_real_sides
from dsfc.plan.ir import Plan
from dsfc.plan.scan_ir import Form, Scan

from ..shared.coverage import Loop, coverage_of, why_on_no_target, without_kernels
from ..torch.operators import skeletons as torch_skeletons
from .printed import has_printed
from .skeletons import scans_with_kernels

CARRIED = "a program of a convolution carries the state from the first token to the last"
SEGMENTS = "one program takes the state from chunk to chunk; the rest runs chunk beside chunk"


def coverage(fused: FusedPlan) -> tuple[ScanCoverage, ...]:
    """Returns which calls of each scan of a plan run in kernels for GPUs, in order."""
    known, plan = scans_with_kernels(fused), fused.original
    chunked = {s.scan.name for s in torch_skeletons(plan) if has_printed(s)}

    def covered(name: str, loop: Loop) -> ScanCoverage:
        if name not in known:
            return without_kernels(name, "GPU", _why(loop, plan))
        beside = SEGMENTS if name in chunked else CARRIED
        segments = "" if name in fused.fused_scans else beside
        return ScanCoverage(name, "GPU", segments=segments)

    return coverage_of(plan, "GPU", covered)


def _why(loop: Loop, plan: Plan) -> str:
    """Why a scan without kernels has none."""
    if not isinstance(loop, Scan) or why_on_no_target(loop):
        return why_on_no_target(loop)
    if any(isinstance(k, Scan) and k.powers for k in plan.kernels):
        return "powers of keys are summed in double precision, and then no scan has kernels"
    if loop.field is Field.COMPLEX:
        return _why_complex(loop, plan)
    if loop.form is Form.SELECTIVE and loop.decay and not set(loop.keys) <= loop.decay.expr.axes:
        return "its keys share a decay, and a thread has no registers for all keys of a channel"
    return f"no kernel for GPUs fits this scan of the form {loop.form.value}"


def _why_complex(scan: Scan, plan: Plan) -> str:
    """Why a complex scan has no kernels."""
    if scan.form is Form.MATRIX and not has_real_sides(scan, {b.name: b for b in plan.arrays}):
        return "no kernel has complex keys or reads"
    if scan.form is Form.SELECTIVE and not can_split(plan, scan):
        return "kernels of complex selective scans have real values, and of outputs the real part"
    if scan.form is Form.KEYED:
        return "no kernel for GPUs has complex values of keys, or outputs but their real part"
    return f"its states are complex, and kernels for GPUs of the form {scan.form.value} are real"
