"""All targets in one module: kernels in C on CPUs, Triton's on GPUs, and the torch form elsewhere.

A module of this backend is that of `dsfc.backends.triton`. Where its operators would run the torch
form of a scan, they start the kernels of `dsfc.backends.c` if the scan has some and runs on a CPU.

| file        | what it holds                                     |
|-------------|---------------------------------------------------|
| `render.py` | both targets as one                               |
"""

from __future__ import annotations

from dsfc.fused.ir import FusedPlan

from ..c import BACKEND as C
from ..torch import TorchBackend
from ..triton import BACKEND as TRITON
from .render import target


def _with_kernels(fused: FusedPlan) -> tuple[str, ...]:
    """The scans that have kernels for CPUs, for GPUs, or for both."""
    targets = (b.with_kernels for b in (C, TRITON))
    return tuple(dict.fromkeys(n for names in targets if names for n in names(fused)))


BACKEND = TorchBackend(
    name="all",
    target=target,
    faults=TRITON.faults,
    costs=TRITON.costs,
    kernels=lambda fused: (*C.kernels(fused), *TRITON.kernels(fused)),
    with_kernels=_with_kernels,
    computes=TRITON.computes,
    probes=C.probes,
    needs={**C.needs, **TRITON.needs},
)
