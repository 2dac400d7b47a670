"""Plan → what its module runs on: kernels in C, Triton kernels, and torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from dsfc.fused.ir import FusedPlan

from ..c import render as c
from ..c.skeletons import NativeSkeleton, native, scans_with_kernels
from ..shared.coverage import loops
from ..torch import render as torch
from ..torch.signature import Signature
from ..torch.skeletons import Skeleton
from ..triton import render as triton
from ..triton.gated import GatedKernels
from ..triton.printed_scan import PrintedScan
from ..triton.printed_step import PrintedStep


def target(fused: FusedPlan) -> torch.Target:
    """Returns what the module of a plan runs on; one target where the other has no kernels."""
    gpu, cpu = triton.target(fused), c.target(fused)
    if not loops(fused.original):
        return gpu

    def explained(names: Signature) -> tuple[str, ...]:
        is_cpu = '        if torch.device(device).type == "cpu":'
        return (*gpu.explained(names), is_cpu, *c.explanation(fused, names, " " * 12))

    if not scans_with_kernels(fused):
        return replace(gpu, explained=explained)
    if gpu.skeletons is torch.TORCH.skeletons:
        return replace(cpu, explained=explained)

    def shared(
        filled: Callable[..., str], names: Signature, scans: tuple[Skeleton, ...]
    ) -> tuple[str, ...]:
        inner: tuple[Any, ...] = tuple(s for s in map(_native_of, scans) if s is not None)
        kernels = tuple(s for s in scans if not isinstance(s, NativeSkeleton))
        return (*cpu.shared(filled, names, inner), *gpu.shared(filled, names, kernels))

    return replace(
        gpu,
        skeletons=lambda plan: tuple(map(_with_native, gpu.skeletons(plan))),
        packages=tuple(dict.fromkeys((*cpu.packages, *gpu.packages))),
        shared=shared,
        explained=explained,
        runtime=cpu.runtime,
        last=cpu.last,
    )


def _with_native(s: Any) -> Any:  # noqa: ANN401 - a Skeleton, or what stands for one
    """The scan with kernels in C in the place of its torch form, where it has some."""
    match s:
        case GatedKernels():
            return replace(s, plain_scan=_own_native(s.plain_scan))
        case PrintedScan():
            return replace(s, plain=_own_native(s.plain))
        case _:
            return _own_native(s)


def _own_native(s: Any) -> Any:  # noqa: ANN401 - a Skeleton, or what stands for one
    if isinstance(s, PrintedStep):  # where no GPU runs a token, the kernel in C does
        return replace(s, plain=_own_native(s.plain))
    return native(s) or s


def _native_of(s: Any) -> NativeSkeleton | None:  # noqa: ANN401 - as above
    """The scan with kernels in C that stands in another."""
    inner = s.plain if isinstance(s, GatedKernels | PrintedScan) else s
    inner = inner.plain if isinstance(inner, PrintedStep) else inner
    return inner if isinstance(inner, NativeSkeleton) else None
