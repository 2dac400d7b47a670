"""What kernels take of a GPU, as compiled ahead of time for GPUs that need not be there.

Run as a program it compiles the kernels of every spec that has any, and writes the table beside it:

    python -P tests/backends/triton/resources.py [spec ...]
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

import dsfc

TABLE = Path(__file__).with_name("resources.json")
SPECS = ("qlstm", "qlstm_s6gate", "qlstm_tanh", "rg_lru", "rwkv4")
TARGETS = {
    "sm_80": GPUTarget("cuda", 80, 32),
    "sm_90": GPUTarget("cuda", 90, 32),
    "sm_100": GPUTarget("cuda", 100, 32),
    "gfx942": GPUTarget("hip", "gfx942", 64),
}
DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
WIDTH = 2048
"""Channels; only whether 16 divides it matters to the code."""

_POINTERS = {torch.bfloat16: "*bf16", torch.float16: "*fp16", torch.float32: "*fp32"}
_TOOLS = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"


@dataclass(frozen=True)
class Resources:
    """What one kernel takes.

    Attributes:
        registers: of a thread; on gfx942 the vector registers, those for matrix products included.
        stack: bytes of a thread: what did not fit the registers.
        shared: bytes of a program.
        instructions: of the whole kernel; a kernel that cannot run has hardly any.
        loads, stores: of 128 bits, to memory of the device.
    """

    registers: int
    stack: int
    shared: int
    instructions: int
    loads: int
    stores: int


@dataclass(frozen=True)
class Launch:
    """One launch, as the module makes it.

    Attributes:
        name: of the kernel.
        kernel: the kernel.
        arguments: by name, constants of the compilation too.
        options: of the compiler.
    """

    name: str
    kernel: Any
    arguments: dict[str, Any]
    options: dict[str, Any]


def module_of(spec: str, folder: Path) -> ModuleType:
    """Imports the module of a shipped spec, printed for Triton."""
    path = folder / f"{spec}_.py"
    path.write_text(dsfc.load(spec).module("triton").text, encoding="utf-8")
    return dsfc.import_module(path)


def launches(module: ModuleType, target: GPUTarget, dtype: torch.dtype) -> list[Launch]:
    """The launches of a forward and a backward pass, as on the target, without running them."""
    found: list[Launch] = []
    version = 94 if target.backend == "hip" else target.arch

    def tile(form: str, direction: str, x: torch.Tensor) -> tuple[int, ...]:
        of = (form, direction, x.element_size(), target.backend)
        known = {key[-1]: t for key, t in module.TILES.items() if key[:-1] == of}
        return known[max(v for v in known if v <= version)]

    class Recorded:
        def __init__(self, name: str, kernel: Any) -> None:
            self.name, self.kernel = name, kernel

        def __getitem__(self, grid: tuple[int, ...]) -> Any:
            def launch(*args: Any, **kwargs: Any) -> None:
                names = self.kernel.arg_names
                given = dict(zip(names, args, strict=False))
                given |= {n: x for n, x in kwargs.items() if n in names}
                options = {n: x for n, x in kwargs.items() if n not in names}
                assert set(given) == set(names) and grid[0] > 0
                found.append(Launch(self.name, self.kernel, given, options))

            return launch

    kernels = {n: k for n, k in vars(module).items() if n.startswith("_scan_") and hasattr(k, "fn")}
    before = {**kernels, "_tile": module._tile, "_declined": module._declined}
    try:
        for n, k in kernels.items():
            setattr(module, n, Recorded(n, k))
        module._tile, module._declined = tile, lambda *_: ""
        layer = getattr(module, module.__all__[0])(d=WIDTH, dtype=dtype)
        u = torch.zeros(1, 3, WIDTH, dtype=dtype, requires_grad=True)
        layer(u).float().sum().backward()
    finally:
        for n, k in before.items():
            setattr(module, n, k)
    return found


def compiled(launch: Launch, target: GPUTarget) -> Any:
    """Compiles a launch as the just-in-time compiler would: all pointers are of 16 bytes."""
    names = launch.kernel.arg_names
    signature, constants, attributes = {}, {}, {}
    for at, name in enumerate(names):
        x = launch.arguments[name]
        if isinstance(x, torch.Tensor):
            signature[name] = _POINTERS[x.dtype]
            attributes[(at,)] = [["tt.divisibility", 16]]
        elif name == "T":
            assert {"T"} == {launch.kernel.params[at].name} and launch.kernel.params[
                at
            ].do_not_specialize
            signature[name] = "i32"
        else:
            signature[name] = "constexpr"
            constants[(at,)] = x
    source = ASTSource(launch.kernel, signature, constants, attributes)
    return triton.compile(source, target=target, options=launch.options)


def resources(made: Any) -> Resources:
    """Reads what a compiled kernel takes off its text."""
    if "amdgcn" in made.asm:
        text = made.asm["amdgcn"]
        count = {n: int(re.search(rf"\.{n}:\s+(\d+)", text)[1]) for n in _AMD}
        return Resources(
            count["vgpr_count"],
            count["private_segment_fixed_size"],
            made.metadata.shared,
            len(re.findall(r"^\t[a-z]+_\w+", text, re.MULTILINE)),
            len(re.findall(r"(?:global|buffer)_load_dwordx4", text)),
            len(re.findall(r"(?:global|buffer)_store_dwordx4", text)),
        )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(made.asm["cubin"])
        usage = _run("cuobjdump", "-res-usage", path)
        code = _run("nvdisasm", "-c", path)
    return Resources(
        int(re.search(r"REG:(\d+)", usage)[1]),
        int(re.search(r"STACK:(\d+)", usage)[1]),
        made.metadata.shared,
        len(re.findall(r"^\s+/\*[0-9a-f]{4,}\*/\s", code, re.MULTILINE)),
        len(re.findall(r"\b(?:LDG|LDGSTS)\.E\S*\.128", code)),
        len(re.findall(r"\bSTG\.E\S*\.128", code)),
    )


_AMD = ("vgpr_count", "private_segment_fixed_size")


def _run(tool: str, *arguments: str | Path) -> str:
    run = subprocess.run([_TOOLS / tool, *arguments], capture_output=True, text=True, check=True)
    return run.stdout + run.stderr


def table(
    specs: tuple[str, ...], targets: tuple[str, ...], dtypes: tuple[str, ...]
) -> Iterator[tuple[str, Resources]]:
    """Yields `spec kernel dtype target` and what that takes."""
    with tempfile.TemporaryDirectory() as folder:
        for spec in specs:
            module = module_of(spec, Path(folder))
            for dtype in dtypes:
                for target in targets:
                    for launch in launches(module, TARGETS[target], DTYPES[dtype]):
                        made = compiled(launch, TARGETS[target])
                        yield f"{spec} {launch.name} {dtype} {target}", resources(made)


def main() -> None:
    """Compiles what the argument names, `spec,…/dtype,…/target,…`, and prints it as JSON."""
    specs, dtypes, targets = (
        tuple(part.split(",")) if part else default
        for part, default in zip(
            (sys.argv[1] if len(sys.argv) > 1 else "//").split("/"),
            (SPECS, ("bf16", "fp32"), tuple(TARGETS)),
            strict=True,
        )
    )
    for name, found in table(specs, targets, dtypes):
        print(json.dumps({name: asdict(found)}), flush=True)


if __name__ == "__main__":
    main()
