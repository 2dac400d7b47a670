"""Plan → text of a torch module with Triton kernels: the torch module's, with another target."""

from __future__ import annotations

from collections.abc import Callable

from dsfc.plan.ir import Plan

from ..torch import render as torch
from ..torch.signature import Signature
from ..torch.skeletons import Skeleton
from .calls import KernelCall
from .elementwise import ElementwiseKernels
from .functions import functions_of
from .selective import STATES, STEP, SelectiveKernels
from .skeletons import printed, scans_with_kernels, skeletons
from .tiles import rows

_IMPORTS = """\

try:
    import triton
    import triton.language as tl
except ImportError:  # then the torch form runs on every device
    triton = None"""


def _shared(filled: Callable[..., str], scans: tuple[Skeleton, ...]) -> tuple[str, ...]:
    """What all kernels and launches need."""
    found = [s for s in scans if isinstance(s, ElementwiseKernels)]
    code = "\n".join(line for s in found for line in s.code)
    tiles = rows({s.scan.form for s in found})
    parts = [filled("kernels_shared.py.j2", tiles=tiles)]
    if any(isinstance(s, SelectiveKernels) for s in found):
        parts.append(filled("selective_kernels_shared.py.j2", step=STEP, states=STATES))
    return (*parts, *functions_of(code))


def target(plan: Plan) -> torch.Target:
    """Returns what the module of a plan runs on: torch alone where no scan has kernels."""
    scans = scans_with_kernels(plan)
    if not scans:
        return torch.TORCH

    def explained(names: Signature) -> tuple[str, ...]:
        held = [f"self.{p.attribute}.dtype" for p in names.parameters]
        dtype = held[0] if held else "torch.get_default_dtype()"
        what = f"Triton on {{device}}: a kernel each way for {', '.join(scans)}"
        return (
            f"        why = _declined(torch.device(device).type, {dtype}, mode)",
            "        if not why:",
            f'            what = f"{what}"',
            '            return f"{what}; gauge: {State.gauge}; spec: {SPEC}"',
            '        where = f"torch on {device} ({why})"',
        )

    return torch.Target(
        plan=printed,
        skeletons=skeletons,
        call=KernelCall,
        packages=(__package__ or "", *torch.TORCH.packages),
        imports=tuple(_IMPORTS.split("\n")),
        shared=_shared,
        explained=explained,
        runs="{where}",
    )
