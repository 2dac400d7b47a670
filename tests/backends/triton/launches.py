"""How kernels are started: with a driver that starts nothing, and keeps what it is told to start.

Triton compiles, and calls its launcher, as it would for an H100. The program prints one line of
JSON; Triton's interpreter must not be on for it:

    TRITON_INTERPRET=0 python -P tests/backends/triton/launches.py lengths/rg_lru
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
from triton.runtime import driver
from triton.runtime.jit import JITFunction

sys.path.insert(0, str(Path(__file__).parent))

from resources import SEGMENT, TARGETS, Absent, kernels_of, module_of, run, set_to, trusted

Launch = tuple[str, tuple[int, ...], tuple[Any, ...]]
"""Kernel, grid, arguments."""


class Recording(Absent):
    """The driver of a GPU that is not there, which takes kernels and their arguments."""

    def __init__(self) -> None:
        super().__init__(TARGETS["sm_90"])
        self.seen: list[Launch] = []
        self.utils = SimpleNamespace(
            get_device_properties=lambda device: {"max_shared_mem": 232_448},
            load_binary=lambda name, *rest: (name, name, 0, 0, 1024),
            unload_module=lambda module: None,
        )

    def launcher_cls(self, source: Any, metadata: Any) -> Any:
        """What starts a kernel, as Triton calls it: grid, stream, kernel, how, hooks, arguments."""

        def launch(x: int, y: int, z: int, stream: int, kernel: str, *rest: Any) -> None:
            arguments = rest[4:]
            assert len(arguments) == len(source.fn.arg_names)
            self.seen.append((kernel, (x, y, z), tuple(map(described, arguments))))

        return launch


def described(x: Any) -> Any:
    """An argument without its memory."""
    return [str(x.dtype), *x.shape] if isinstance(x, torch.Tensor) else x


@contextmanager
def recording(module: ModuleType) -> Iterator[tuple[list[Launch], list[str]]]:
    """Gives what is launched from here on, and the kernels that Triton's own path launched."""
    through: list[str] = []
    original = JITFunction.run

    def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
        through.append(self.__name__)
        return original(self, *args, **kwargs)

    here = Recording()
    driver.set_active(here)
    for k in kernels_of(module).values():
        k.device_caches.clear()
    JITFunction.run = counted
    try:
        with trusted(module):
            yield here.seen, through
    finally:
        JITFunction.run = original


def lengths(module: ModuleType) -> Any:
    """Kernels compiled, handles, and launches by Triton's path, for 100 lengths and 3 batches.

    Spans are as short as segments, so that time is cut backwards too.
    """
    spans = {"SPAN": SEGMENT} if hasattr(module, "SPAN") else {}
    with set_to(module, **spans), recording(module) as (seen, through):
        for length in range(1, 101):
            run(module, length, torch.bfloat16, width=256, batch=1 + length % 3)
    caches = [len(k.device_caches[0][0]) for k in kernels_of(module).values()]
    return {"compiled": caches, "handles": len(module._COMPILED), "jit": len(through),
            "launches": len(seen)}  # fmt: skip


def same(module: ModuleType) -> Any:
    """What is launched by Triton's path, by handles, and when no version has those."""
    out = []
    with recording(module) as (seen, through):
        for handles in (module.HANDLES, module.HANDLES, ()):
            if not handles:
                module.HANDLES = handles
                module._COMPILED.clear()
            seen.clear(), through.clear()
            run(module, 2 * SEGMENT, torch.bfloat16, width=256)
            out.append({"launches": seen[:], "jit": len(through)})
    return out


def aligned(module: ModuleType) -> Any:
    """Launches by Triton's path: of tensors that start anywhere, after those that do not."""
    (name,) = (n for n in kernels_of(module) if n.startswith("_forward_kernel"))
    kernel = getattr(module, name)
    out = []
    with recording(module) as (_, through):
        layer = getattr(module, module.__all__[0])(d=64, dtype=torch.float32)
        for offset in (0, 0, 1, 1, 4, 0):
            x = torch.zeros(1 * 8 * 64 + offset)[offset:].view(1, 8, 64)
            through.clear()
            with torch.no_grad():
                layer(x)
            out.append(len(through))
    return {"jit": out, "compiled": len(kernel.device_caches[0][0])}


def main() -> None:
    """Prints what the argument names, `<what>/<spec>`."""
    what, _, spec = sys.argv[1].partition("/")
    with tempfile.TemporaryDirectory() as folder:
        module = module_of(spec, Path(folder))
        print(json.dumps({"lengths": lengths, "same": same, "aligned": aligned}[what](module)))


if __name__ == "__main__":
    main()
