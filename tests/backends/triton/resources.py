"""What kernels take of a GPU, as Triton compiles them for GPUs that need not be there.

The just-in-time compiler is asked for the kernels, with a driver that knows its target and no more:
so they are compiled with the attributes that a launch gives them, and under its keys. Run as a
program, which Triton's interpreter must not be on for, it prints a row for each kernel as JSON:

    TRITON_INTERPRET=0 python -P tests/backends/triton/resources.py rg_lru/bf16/sm_90,sm_80

An empty part stands for all. `resources.json` keeps the rows; after a change of a kernel or a tile,

    TRITON_INTERPRET=0 python -P tests/backends/triton/resources.py --write [rg_lru/bf16/]
"""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.runtime import driver
from triton.runtime.jit import JITFunction

import dsfc

sys.path.insert(0, str(Path(__file__).parent))

from kernel_specs import DECODED, EVERY, SIZES, UNUSUAL

TABLE = Path(__file__).with_name("resources.json")
TARGETS = {
    "sm_80": GPUTarget("cuda", 80, 32),
    "sm_90": GPUTarget("cuda", 90, 32),
    "sm_100": GPUTarget("cuda", 100, 32),
    "gfx942": GPUTarget("hip", "gfx942", 64),
}
DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
WIDTH = 2048
"""Channels; only whether 16 divides it matters to the code."""

HEAD = 128
"""Keys and channels of a head, where the spec's name does not say: `retnet:64`, `s6:32`."""

SEGMENT = 32
"""Tokens of a segment, of which a pass has two or more: all kernels are launched."""

_TOOLS = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"


@dataclass(frozen=True)
class Resources:
    """What one kernel takes.

    Attributes:
        registers: of a thread; on gfx942 vector registers, those for matrix products included.
        stack: bytes of a thread: what did not fit the registers.
        shared: bytes of a program.
        instructions: of the whole kernel; one that cannot run for want of memory has hardly any.
        loads, stores: of 128 bits, from and to memory of the device.
        products: instructions that multiply matrices; in the table where there are any.
        spilled: stores to the stack inside of loops; likewise.
    """

    registers: int
    stack: int
    shared: int
    instructions: int
    loads: int
    stores: int
    products: int = 0
    spilled: int = 0


class Absent:
    """Triton's driver of a GPU that is not there."""

    def __init__(self, target: GPUTarget) -> None:
        self._target = target

    def get_current_device(self) -> int:
        """The only one."""
        return 0

    def get_current_stream(self, device: int) -> int:
        """The only one."""
        return 0

    def get_current_target(self) -> GPUTarget:
        """What is compiled for."""
        return self._target


@contextmanager
def compiling(module: ModuleType, target: GPUTarget) -> Iterator[dict[str, Any]]:
    """Lets the launches of a module compile for a target, and run nothing.

    Gives what is compiled, by the name of the kernel.
    """
    made: dict[str, Any] = {}
    run, hip = JITFunction.run, torch.version.hip

    def compiled(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> None:
        made[self.__name__] = run(self, *args, grid=grid, warmup=True, **kwargs)

    driver.set_active(Absent(target))
    for k in vars(module).values():
        if isinstance(k, JITFunction):
            k.starting_line_number = 0  # else a kernel that two specs have is compiled twice
    for k in kernels_of(module).values():
        k.device_caches.clear()  # they are kept by device, and this one changes what it is
    try:
        torch.version.hip = "0" if target.backend == "hip" else None
        JITFunction.run = compiled
        with trusted(module), set_to(module, TILES=_tiles_of(module, target)):
            yield made
    finally:
        JITFunction.run, torch.version.hip = run, hip


@contextmanager
def set_to(module: ModuleType, **values: Any) -> Iterator[None]:
    """Gives public names of a module other values."""
    before = {name: getattr(module, name) for name in values}
    vars(module).update(values)
    try:
        yield
    finally:
        vars(module).update(before)


@contextmanager
def trusted(module: ModuleType) -> Iterator[None]:
    """Lets a module launch its kernels on a machine without a GPU, in short segments."""
    verdicts = {(torch.device("cpu"), dtype): "" for dtype in DTYPES.values()}
    with set_to(module, DEVICES=("cpu",), TRUST=verdicts, SEGMENT=SEGMENT):
        yield


def _tiles_of(module: ModuleType, target: GPUTarget) -> dict[tuple[Any, ...], Any]:
    """The tiles of a target, in the rows that launches look up where there is no GPU."""
    version = 94 if target.backend == "hip" else int(target.arch)
    known = sorted(k for k in module.TILES if k[3] == target.backend and k[4] <= version)
    # The newest architecture comes last, and stays.
    return {(*k[:3], "cuda", 0): module.TILES[k] for k in known}


def kernels_of(module: ModuleType) -> dict[str, Any]:
    """The kernels that a module launches."""
    return {
        n: k
        for n, k in vars(module).items()
        if re.match("_((for|back)ward|steps?)_([a-z]+_)?kernel", n)
    }


def module_of(spec: str, folder: Path) -> ModuleType:
    """Imports the module of a spec, shipped or an unusual one, printed for Triton."""
    name = re.split("[:@]", spec)[0]
    path, given = folder / f"{name}_.py", folder / f"{name}.dsf"
    if name in UNUSUAL:
        given.write_text(f"mixer {name} {{\n{UNUSUAL[name]}\n}}\n", encoding="utf-8")
    loaded = dsfc.load(given if name in UNUSUAL else name)
    path.write_text(loaded.module("triton").text, encoding="utf-8")
    return dsfc.import_module(path)


def least(module: ModuleType) -> int:
    """Tokens of the shortest segment both ways: backwards one of a matrix scan has whole spans."""
    return getattr(module, "SPAN", SEGMENT)


def run(
    module: ModuleType,
    length: int,
    dtype: torch.dtype,
    width: int = WIDTH,
    head: int | None = None,
    batch: int = 1,
    pack: list[int] | None = None,
) -> None:
    """A forward and a backward pass; where there are heads, each has so many keys and channels.

    With a pack, sequences start where it says.
    """
    layer = getattr(module, module.__all__[0])(**sizes_of(module, width, head), dtype=dtype)
    names = list(inspect.signature(layer.forward).parameters)
    shape = {"eta": (width // (head or HEAD),)}  # a normaliser has one number a head
    given = {
        n: torch.zeros(batch, length, *shape.get(n, (width,)), dtype=dtype, requires_grad=True)
        for n in names[: names.index("state")]
    }
    starts = None if pack is None else torch.tensor(pack)
    layer(**given, cu_seqlens=starts).float().sum().backward()


def decode(module: ModuleType, dtype: torch.dtype) -> None:
    """One token, and two that keep their states: the kernels of decoding."""
    layer = getattr(module, module.__all__[0])(**sizes_of(module, WIDTH, None), dtype=dtype)
    names = list(inspect.signature(layer.step_k).parameters)
    tokens = [torch.zeros(1, 2, WIDTH, dtype=dtype) for _ in names[: names.index("state")]]
    with torch.no_grad():
        state = layer.initial_state(1)
        layer.step(*(x[:, 0] for x in tokens), state)
        layer.step_k(*tokens, state)


def sizes_of(module: ModuleType, width: int, head: int | None) -> dict[str, int]:
    """Sizes of the axes of a layer."""
    mixer = getattr(module, module.__all__[0])
    size = head or HEAD
    sizes = {"h": max(width // size, 1), "n": size, "p": size, "r": size}
    sizes = {n: size for n, size in sizes.items() if n in inspect.signature(mixer).parameters}
    if head is None:
        sizes |= SIZES.get(mixer.__name__.lower(), {})
    return {"d": width, **sizes}


def resources(made: Any) -> Resources:
    """Reads what a compiled kernel takes off its text."""
    if "amdgcn" in made.asm:
        text = made.asm["amdgcn"]
        return Resources(
            int(re.search(r"\.vgpr_count:\s+(\d+)", text)[1]),
            int(re.search(r"\.private_segment_fixed_size:\s+(\d+)", text)[1]),
            made.metadata.shared,
            len(re.findall(r"^\t[a-z]+_\w+", text, re.MULTILINE)),
            len(re.findall(r"(?:global|buffer)_load_dwordx4", text)),
            len(re.findall(r"(?:global|buffer)_store_dwordx4", text)),
            len(re.findall(r"\bv_mfma_", text)),
            in_loops(text, r"^(\.L\w+):", r"s_c?branch\w* (\.L\w+)", r"\bscratch_store"),
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
        len(re.findall(r"\b(?:HMMA|HGMMA|UTC\w*MMA)\b", code)),
        in_loops(code, r"^(\.L\w+):", r"\bBRA\b.*\((\.L\w+)\)", r"\bSTL\b"),
    )


def in_loops(text: str, label: str, branch: str, what: str) -> int:
    """Counts lines with something between a label and a branch back to it."""
    lines = text.splitlines()
    labels: dict[str, int] = {}
    looped: set[int] = set()
    for number, line in enumerate(lines):
        if found := re.search(label, line):
            labels[found[1]] = number
        elif found := re.search(branch, line):
            looped |= set(range(labels.get(found[1], number), number))
    return sum(bool(re.search(what, lines[number])) for number in looped)


def row(taken: Resources) -> dict[str, int]:
    """A row of the table."""
    return {n: x for n, x in asdict(taken).items() if x or n not in ("products", "spilled")}


def _run(tool: str, *arguments: str | Path) -> str:
    done = subprocess.run([_TOOLS / tool, *arguments], capture_output=True, text=True, check=True)
    return done.stdout + done.stderr


def rows(wanted: Iterable[tuple[str, str, str]]) -> Iterator[tuple[str, Resources]]:
    """Yields `spec kernel dtype target`, and what that takes, of specs, dtypes and targets."""
    found: dict[str, Resources] = {}
    with tempfile.TemporaryDirectory() as folder:
        for spec, dtype, target in wanted:
            module = module_of(spec, Path(folder))
            head = spec.partition(":")[2]
            with compiling(module, TARGETS[target]) as made:
                if spec.endswith(DECODED):
                    decode(module, DTYPES[dtype])
                else:
                    size = int(head) if head else None
                    run(module, 2 * least(module), DTYPES[dtype], head=size)
            for name, kernel in made.items():
                if kernel.hash not in found:
                    found[kernel.hash] = resources(kernel)
                yield f"{spec} {name} {dtype} {target}", found[kernel.hash]


def triple(name: str) -> tuple[str, str, str]:
    """Spec, dtype and target of a row."""
    spec, _, dtype, target = name.split()
    return spec, dtype, target


def merged(found: dict[str, dict[str, int]]) -> dict[str, dict[str, int]]:
    """The table's rows, these in place of all others of their specs, dtypes and targets."""
    fresh = {triple(name) for name in found}
    old = json.loads(TABLE.read_text(encoding="utf-8"))["kernels"]
    rest = {n: r for n, r in old.items() if triple(n) in set(EVERY) - fresh}
    return dict(sorted((rest | found).items(), key=lambda item: EVERY.index(triple(item[0]))))


def write(change: dict[str, Any]) -> None:
    """Writes a part of the table, a row to a line, and leaves the others as they are."""
    parts = []
    for name, value in (json.loads(TABLE.read_text(encoding="utf-8")) | change).items():
        text = json.dumps(value)
        if isinstance(value, dict):
            lines = ",\n".join(f"    {json.dumps(n)}: {json.dumps(r)}" for n, r in value.items())
            text = f"{{\n{lines}\n  }}"
        parts.append(f"  {json.dumps(name)}: {text}")
    TABLE.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


def main() -> None:
    """Prints what the argument names, and writes it into the table."""
    given = [x for x in sys.argv[1:] if x != "--write"]
    parts = [part.split(",") for part in (given[0] if given else "//").split("/")]
    wanted = [
        row
        for row in EVERY
        if all(x in part or part == [""] for x, part in zip(row, parts, strict=True))
    ]
    found = {}
    for name, taken in rows(wanted):
        found[name] = row(taken)
        print(json.dumps({name: found[name]}), flush=True)
    if "--write" in sys.argv:
        write({"triton": triton.__version__, "kernels": merged(found)})


if __name__ == "__main__":
    main()
