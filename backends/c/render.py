"""Plan → text of a torch module with kernels in C: the torch module's, with another target."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.resources import files

from dsfc.fused.ir import FusedPlan
from dsfc.kernels.convolution import MOST_KEYS

from ..shared.section import Section, section
from ..torch import render as torch
from ..torch.signature import Signature
from ..torch.skeletons import Skeleton
from .launch import ConvolutionLaunch
from .reserved_names import header
from .skeletons import NativeSkeleton, scans_with_kernels, skeletons

NONE = "no scan of this mixer has kernels in C"


_IMPORTS = (
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


def runtime_section() -> Section:
    """Returns the section of modules with kernels in C: what starts them, and their header."""
    native = (files(__package__ or "") / "runtime" / "native.py").read_text(encoding="utf-8")
    return section((native, f'_HEADER = r"""{header()}"""'), _IMPORTS)


def target(fused: FusedPlan) -> torch.Target:
    """Returns what the module of a plan runs on: torch alone where no scan has kernels."""
    scans = scans_with_kernels(fused)
    if not scans:
        return replace(torch.TORCH, runs=f"torch on {{device}} ({NONE})")

    filling = skeletons(fused)

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

    def large(names: Signature) -> Iterator[str]:
        """Yields lines that say for which sizes torch is faster."""
        starts = [s.start for s in filling if isinstance(s, NativeSkeleton)]
        for start in starts:
            said = start.too_much(lambda a: f"self.{names.size(a)}")
            if said is not None:
                yield f"        elif {said[0]}:"
                yield f'            why = f"{said[1]}"'

    def explained(names: Signature) -> tuple[str, ...]:
        what = f"C on {{device}}: a kernel each way for {', '.join(scans)}"
        return (
            "        why = _NATIVE.why_never()",
            '        if torch.device(device).type != "cpu":',
            '            why = "kernels in C run on CPUs"',
            "        elif mode not in NATIVE_MODES:",
            '            why = f"mode {mode} has no kernel in C"',
            *large(names),
            "        if not why:",
            f'            what = f"{what}"',
            '            return f"{what}; gauge: {State.gauge}; spec: {SPEC}"',
            '        where = f"torch on {device} ({why})"',
        )

    return replace(
        torch.TORCH,
        skeletons=lambda plan: filling,
        packages=(__package__ or "", *torch.TORCH.packages),
        shared=shared,
        explained=explained,
        runs="{where}",
        runtime=runtime_section(),
        last=("_NATIVE = _Native(_HEADER, _KERNELS, _FOLLOWING)",),
    )
