"""Counts of the kernels of a scan, and of all scans of a plan."""

from __future__ import annotations

from dsfc.expr.tree import Field
from dsfc.fused.ir import FusedPlan, Prologue, PrologueEpilogue, is_paired
from dsfc.plan.ir import Plan
from dsfc.plan.scan_ir import Form, Scan

from .counts import KernelCost, Sizes, sizes_of
from .elementwise import elementwise
from .matrix import matrix
from .phased import phased
from .selective import selective


def plan_costs(fused: FusedPlan) -> tuple[KernelCost, ...]:
    """Returns what the scans of a fused plan that have kernels cost."""
    costs: list[KernelCost] = []
    for name, scan in fused.scans.items():
        gates, features = fused.prologue(name), fused.prologue_epilogue(name)
        if gates is not None or features is not None:
            vectors = _vectors(scan, fused.original)
            costs += kernel_costs(scan, gates, features, vectors=vectors)
    return tuple(costs)


def _vectors(scan: Scan, plan: Plan) -> tuple[int, int]:
    pairs = {b.name for b in plan.arrays if b.field is Field.COMPLEX}
    return 1 + (scan.key in pairs), 1 + (scan.read in pairs)


def kernel_costs(
    scan: Scan,
    gates: Prologue | None = None,
    features: PrologueEpilogue | None = None,
    sizes: Sizes | None = None,
    vectors: tuple[int, int] = (1, 1),
) -> tuple[KernelCost, ...]:
    """Returns what a scan costs, fused and split.

    Args:
        scan: the scan; forms without kernels cost nothing that is known.
        gates: of a scan without keys, what its kernels compute.
        features: of a matrix scan, what its kernels compute besides.
        sizes: what the counts are over; those of its axes, if not given.
        vectors: of a selective scan, arrays of keys and of reads: two where they are complex.
    """
    sizes = sizes or sizes_of(scan)
    match scan.form:
        case Form.MATRIX if is_paired(scan):
            ways = phased(scan, features, sizes)
        case Form.MATRIX:
            ways = matrix(scan, features, sizes)
        case Form.SELECTIVE:
            ways = selective(scan, gates, sizes, vectors)
        case Form.ELEMENTWISE | Form.CONVOLUTION if gates is not None:
            ways = elementwise(gates, sizes)
        case _:
            return ()
    return tuple(
        KernelCost(scan.name, way, passes, compulsory_bytes)
        for way, (passes, compulsory_bytes) in zip(("fused", "split"), ways, strict=False)
    )
