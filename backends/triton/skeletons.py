"""Which form of scan has kernels, and what a plan with kernels prints.

A form without a row here keeps the torch form of its operators, whatever the device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dsfc.fused.ir import FusedPlan, Prologue, is_paired
from dsfc.kernel_ir.ir import Kernel
from dsfc.plan.ir import Buffer
from dsfc.plan.scan_ir import Form, Scan

from ..torch.operators import skeletons as torch_skeletons
from ..torch.skeletons import Skeleton
from . import convolution, elementwise, matrix, phases, selective
from .printed import has_printed
from .printed import printed as with_printed
from .printed_convolution import has_printed_convolution, printed_convolution
from .printed_step import with_step

_FORMS: dict[Form, Callable[[Skeleton, Scan, Prologue, dict[str, Buffer]], Skeleton]] = {
    Form.ELEMENTWISE: elementwise.kernels,
    Form.CONVOLUTION: convolution.kernels,
    Form.SELECTIVE: selective.kernels,
}


def skeletons(fused: FusedPlan) -> tuple[Any, ...]:
    """Returns what the templates of each scan are filled with, in the order of the plan.

    Args:
        fused: the plan, with what kernels compute besides their recurrences.
    """
    scans = fused.scans
    arrays = {b.name: b for b in fused.plan.arrays}
    out: list[Any] = []
    for s in torch_skeletons(fused.original):
        name = s.scan.name
        if (features := fused.prologue_epilogue(name)) is not None:
            form = phases if is_paired(scans[name]) else matrix
            s = form.kernels(with_step(s, "_ungated"), scans[name], features, arrays)
        elif (gates := fused.prologue(name)) is not None:
            s = _FORMS[s.scan.form](s, scans[name], gates, arrays)
        out.append(_with_printed(s))
    return tuple(out)


def _with_printed(s: Any) -> Any:  # noqa: ANN401 - a Skeleton, or what stands for one
    """A scan with its printed kernels, where it has some."""
    if has_printed(s):
        return with_printed(with_step(s, "_torch"))
    if has_printed_convolution(s.scan):
        return printed_convolution(with_step(s, "_torch"))
    return s


def _is_printed(s: Skeleton) -> bool:
    """Whether a scan has kernels that are printed."""
    return has_printed(s) or has_printed_convolution(s.scan)


def scans_with_kernels(fused: FusedPlan) -> tuple[str, ...]:
    """Returns the names of the scans that have kernels, in the order of the plan.

    Args:
        fused: the plan, with what kernels compute besides their recurrences.
    """
    scans = torch_skeletons(fused.original)
    return tuple(s.scan.name for s in scans if s.scan.name in fused.fused_scans or _is_printed(s))


def kernels(fused: FusedPlan) -> tuple[Kernel, ...]:
    """Returns the kernels of a plan that are printed, forwards and backwards of each such scan."""
    scans = [_with_printed(s) for s in torch_skeletons(fused.original) if _is_printed(s)]
    return tuple(k for s in scans for k in s.kernels)
