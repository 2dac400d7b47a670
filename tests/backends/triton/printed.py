"""Printed kernels, run by Triton's interpreter on NumPy's arrays."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from dsfc.backends.triton.blocks import PrintedKernel
from dsfc.backends.triton.functions import functions_of
from dsfc.backends.triton.printer import print_kernel
from numpy.typing import NDArray

from dsfc.kernel_ir.interpret import value_of
from dsfc.kernel_ir.ir import Access, Kernel

_HEAD = """\
import torch
import triton
import triton.language as tl


def _kernel(function):
    varying = [name for name, a in function.__annotations__.items() if a.startswith("tl.int")]
    return triton.jit(function, do_not_specialize=varying)
"""


def module_of(kernel: Kernel, folder: Path, **more: Any) -> tuple[ModuleType, PrintedKernel]:
    """Imports the text of a kernel; `more` is what `print_kernel` takes besides."""
    printed = print_kernel(kernel, "kernel", **more)
    templates = (f"printed_{what}_shared.py.j2" for what in ("memory", "kernels", "triangles"))
    shared = "\n\n".join((files("dsfc.backends.triton") / t).read_text() for t in templates)
    path = folder / "printed.py"
    head = f"from __future__ import annotations\n\n{_HEAD}"
    text = "\n\n\n".join([head, shared, *functions_of(printed.text), printed.text])
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("printed", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module, printed


def run(
    kernel: Kernel,
    folder: Path,
    arguments: Mapping[str, NDArray[Any]],
    sizes: Mapping[str, int],
    **more: Any,
) -> dict[str, NDArray[Any]]:
    """Returns what a kernel writes, in float32; whatever lies around an argument stays as it is."""
    module, printed = module_of(kernel, folder, **more)
    programs = 1
    for g in kernel.grid:
        programs *= value_of(g.count, sizes)
    held, whole = [], {}
    for a in kernel.arguments:
        shape = [value_of(s, sizes) for s in a.shape]
        if a.access is Access.SCRATCH:
            shape = [programs, *shape]
        count = int(np.prod(shape))
        guarded = torch.full((count + 64,), float("nan"))
        inner = guarded[32 : 32 + count].view(shape)
        if a.access is Access.READ:
            inner.copy_(torch.from_numpy(np.asarray(arguments[a.name], np.float32)))
        held.append(inner)
        whole[a.name] = guarded
    constants = {n: sizes[n] for n in printed.static}
    constants |= {f"{n}_ALL": max(16, 1 << (sizes[n] - 1).bit_length()) for n in printed.padded}
    constants |= {"FACTORS": "ieee", "EXACT": "ieee", "STAGES": 1}
    if programs:
        module.kernel[(programs,)](*held, *(sizes[n] for n in printed.dynamic), **constants)
    for guarded in whole.values():
        assert guarded[:32].isnan().all() and guarded[-32:].isnan().all()
    written = [a for a in kernel.arguments if a.access is Access.WRITE]
    return {
        a.name: x.numpy().astype(np.float64)
        for a, x in zip(kernel.arguments, held, strict=True)
        if a in written
    }
