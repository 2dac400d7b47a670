"""Plan → text of a torch module with kernels in C: the torch module's, with another target."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.resources import files

from dsfc.fused.ir import FusedPlan
from dsfc.kernels.convolution import MOST_KEYS

from ..shared.coverage import said_of_scans
from ..shared.section import Section, section
from ..torch import render as torch
from ..torch.layout import bound_text
from ..torch.rotating_frame import runtime_text
from ..torch.signature import Signature
from ..torch.skeletons import Skeleton
from .coverage import coverage
from .launch import ConvolutionLaunch
from .reserved_names import header
from .skeletons import NativeSkeleton, scans_with_kernels, skeletons

_IMPORTS = (
    "import array",
    "import contextlib",
    "import ctypes",
    "import hashlib",
    "import logging",
    "import os",
    "import platform",
    "import shutil",
    "import stat",
    "import subprocess",
    "import tempfile",
    "from pathlib import Path",
)


def runtime_section(rotates: bool) -> Section:
    """Returns the section of modules with kernels in C: what starts them, and their header.

    Args:
        rotates: whether a scan runs in a rotating frame.
    """
    native = (files(__package__ or "") / "runtime" / "native.py").read_text(encoding="utf-8")
    frame = (runtime_text(),) if rotates else ()
    return section((*frame, native, f'_HEADER = r"""{header()}"""'), _IMPORTS)


def explanation(fused: FusedPlan, names: Signature, indent: str) -> Iterator[str]:
    """Yields the first statements of `explain` on a CPU: what runs there, and why not kernels.

    Args:
        fused: the plan.
        names: what its module calls things.
        indent: of the statements.
    """
    scans, without = scans_with_kernels(fused), said_of_scans(coverage(fused))
    if not scans:
        yield from bound_text("why =", without, indent)
        yield f'{indent}where = f"torch on {{device}} ({{why}})"'
        return
    yield f"{indent}why = _NATIVE.why_never()"
    yield f'{indent}if torch.device(device).type != "cpu":'
    yield f'{indent}    why = "kernels in C run on CPUs"'
    yield f'{indent}elif mode not in NATIVE_MODES and (mode, length) != ("recurrent", 1):'
    yield f'{indent}    why = f"mode {{mode}} has no kernel in C"'
    for s in (s for s in skeletons(fused) if isinstance(s, NativeSkeleton)):
        said = s.start.too_much(lambda a: f"self.{names.size(a)}")
        if said is not None:
            yield f"{indent}elif {said[0]}:"
            yield f'{indent}    why = f"{said[1]}"'
    yield f"{indent}if not why:"
    yield f'{indent}    what = f"C on {{device}}: a kernel each way for {", ".join(scans)}"'
    if without:
        yield from bound_text("what +=", f"; {without}", f"{indent}    ")
    yield f'{indent}    return f"{{what}}; gauge: {{State.gauge}}; spec: {{SPEC}}"'
    yield f'{indent}where = f"torch on {{device}} ({{why}})"'


def target(fused: FusedPlan) -> torch.Target:
    """Returns what the module of a plan runs on: torch alone where no scan has kernels."""
    if not scans_with_kernels(fused):
        return torch.torch_alone(said_of_scans(coverage(fused)))

    filling = skeletons(fused)
    rotates = any(isinstance(s, NativeSkeleton) and s.real is not None for s in filling)

    def shared(
        filled: Callable[..., str], names: Signature, scans: tuple[Skeleton, ...]
    ) -> tuple[str, ...]:
        native = [s for s in scans if isinstance(s, NativeSkeleton)]
        kernels = {name: text for s in native for name, text in s.kernels.items()}
        pairs = [(s.forward, s.backward) for s in native]
        # The gradient follows, where it is compiled for sizes that are known by then.
        following = [(a.name, b) for a, b in pairs if set(b.static) <= set(a.static)]
        text = filled(
            "native.py.j2",
            kernels=kernels,
            following=following,
            complex=any(s.complex for s in native),
            most_keys=MOST_KEYS,
            convolves=any(isinstance(s.start, ConvolutionLaunch) for s in native),
        )
        return (text,)

    return replace(
        torch.TORCH,
        skeletons=lambda plan: filling,
        packages=(__package__ or "", *torch.TORCH.packages),
        shared=shared,
        explained=lambda names: tuple(explanation(fused, names, " " * 8)),
        runs="{where}",
        runtime=runtime_section(rotates),
        last=("_NATIVE = _Native(_HEADER, _KERNELS, _FOLLOWING)",),
    )
