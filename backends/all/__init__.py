"""All targets in one module: kernels in C on CPUs, Triton's on GPUs, and the torch form elsewhere.

A module of this backend is that of `dsfc.backends.triton`. Where its operators would run the torch
form of a scan, they start the kernels of `dsfc.backends.c` if the scan has some and runs on a CPU.

| file        | what it holds                                     |
|-------------|---------------------------------------------------|
| `render.py` | both targets as one                               |
"""

from __future__ import annotations

from ..c import BACKEND as C
from ..torch import TorchBackend
from ..triton import BACKEND as TRITON
from .render import target

BACKEND = TorchBackend(
    name="all",
    target=target,
    faults=TRITON.faults,
    costs=TRITON.costs,
    kernels=lambda fused: (*C.kernels(fused), *TRITON.kernels(fused)),
    coverage=lambda fused: (*C.coverage(fused), *TRITON.coverage(fused)),
    computes=TRITON.computes,
    probes=C.probes,
    needs={**C.needs, **TRITON.needs},
)
