"""Which form of scan has kernels, and what a plan with kernels prints.

A form without a row here keeps the torch form of its operators, whatever the device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dsfc.expr.tree import Field
from dsfc.plan.features import FusedPlan, take_in
from dsfc.plan.gates import Gates
from dsfc.plan.ir import Buffer, Form, Plan, Scan
from dsfc.plan.planes import can_split, has_real_sides, is_paired

from ..torch.operators import skeletons as torch_skeletons
from ..torch.skeletons import Skeleton
from . import convolution, elementwise, matrix, phases, selective
from .nodes import knows
from .printed import has_printed
from .printed import printed as with_printed

_FORMS: dict[Form, Callable[[Skeleton, Scan, Gates, dict[str, Buffer]], Skeleton]] = {
    Form.ELEMENTWISE: elementwise.kernels,
    Form.CONVOLUTION: convolution.kernels,
    Form.SELECTIVE: selective.kernels,
}


def fused(plan: Plan) -> FusedPlan:
    """Returns a plan whose scans compute in their kernels what Triton can compute there."""
    return take_in(plan, knows)


def skeletons(plan: Plan, inside: FusedPlan) -> tuple[Any, ...]:
    """Returns what the templates of each scan are filled with, in the order of the plan.

    Args:
        plan: the plan.
        inside: the same plan, fused.
    """
    scans = inside.scans
    arrays = {b.name: b for b in inside.plan.arrays}
    out: list[Any] = []
    for s in torch_skeletons(plan):
        name = s.scan.name
        if name in inside.features:
            form = phases if is_paired(scans[name]) else matrix
            s = form.kernels(s, scans[name], inside.features[name], arrays)
        elif name in inside.gates:
            s = _FORMS[s.scan.form](s, scans[name], inside.gates[name], arrays)
        out.append(with_printed(s) if has_printed(s.scan) else s)
    return tuple(out)


def without_kernels(plan: Plan) -> str:
    """Returns why complex scans with keys have no kernels; empty where that is not the reason."""
    arrays = {b.name: b for b in plan.arrays}
    scans = [k for k in plan.kernels if isinstance(k, Scan) and k.field is Field.COMPLEX]
    if any(s.form is Form.MATRIX and not has_real_sides(s, arrays) for s in scans):
        return "no kernel has complex keys or reads"
    if any(s.form is Form.SELECTIVE and not can_split(plan, s) for s in scans):
        return "kernels of complex selective scans have real values, and of outputs the real part"
    return ""


def scans_with_kernels(plan: Plan, inside: FusedPlan) -> tuple[str, ...]:
    """Returns the names of the scans that have kernels, in the order of the plan.

    Args:
        plan: the plan.
        inside: the same plan, fused.
    """
    taken = {*inside.gates, *inside.features}
    scans = (k for k in plan.kernels if isinstance(k, Scan))
    return tuple(s.name for s in scans if s.name in taken or has_printed(s))
