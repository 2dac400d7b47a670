"""How kernels are started: with a driver that starts nothing, and keeps what it is told to start.

Triton compiles, and calls its launcher, as it would for an H100. The program prints one line of
JSON; Triton's interpreter must not be on for it:

    TRITON_INTERPRET=0 python -P tests/backends/triton/launches.py lengths/rg_lru
"""

from __future__ import annotations

import inspect
import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
import triton
from triton.runtime import driver
from triton.runtime.jit import JITFunction

from dsfc.validate.dispatch import OperatorSpy

sys.path.insert(0, str(Path(__file__).parent))

from resources import (
    SEGMENT,
    TARGETS,
    Absent,
    kernels_of,
    module_of,
    run,
    set_to,
    sizes_of,
    trusted,
)

Launch = tuple[str, tuple[int, ...], tuple[Any, ...]]
"""Kernel, grid, arguments."""


class Recording(Absent):
    """The driver of a GPU that is not there, which takes kernels and their arguments."""

    def __init__(self) -> None:
        super().__init__(TARGETS["sm_90"])
        self.seen: list[Launch] = []
        self.numbers: dict[int, int] = {}
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
            kinds = source.signature.values()
            seen = [self._described(x, kind) for x, kind in zip(arguments, kinds, strict=True)]
            self.seen.append((kernel, (x, y, z), tuple(seen)))

        return launch

    def _described(self, x: Any, kind: str) -> Any:
        """An argument; of a tensor, given or by its address, its kind and its number."""
        if x is None or not kind.startswith("*"):
            return x
        address = x if isinstance(x, int) else x.data_ptr()
        return [kind, self.numbers.setdefault(address, len(self.numbers))]


@contextmanager
def nothing_freed() -> Iterator[None]:
    """Keeps all tensors whose addresses are asked for, so that no two have the same."""
    kept: list[torch.Tensor] = []
    original = torch.Tensor.data_ptr

    def kept_alive(self: torch.Tensor) -> int:
        kept.append(self)
        return original(self)

    # mypy takes no method of a class for a place to write to.
    torch.Tensor.data_ptr = kept_alive  # type: ignore[method-assign]
    try:
        yield
    finally:
        # As above.
        torch.Tensor.data_ptr = original  # type: ignore[method-assign]


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


@contextmanager
def uncompiled(
    module: ModuleType, started: list[str] | None = None
) -> Iterator[dict[str, set[str]]]:
    """Gives what Triton would compile, by the name of the kernel, and compiles and starts nothing.

    Triton compiles once for each of its keys: kinds of arguments and constants, and options. A list
    learns which kernels its own path was to start.
    """
    keys: dict[str, set[str]] = {}
    started = [] if started is None else started
    original = JITFunction.run

    def asked(self: Any, *args: Any, grid: Any, warmup: bool, **options: Any) -> Any:
        *_, bind = self.device_caches[0]
        _, kinds, rest = bind(*args, **options)
        keys.setdefault(self.__name__, set()).add(f"{kinds} {sorted(rest.items())}")
        started.append(self.__name__)
        return SimpleNamespace(run=lambda *args: None, function=None, packed_metadata=())

    driver.set_active(Recording())
    JITFunction.run = asked
    try:
        with trusted(module):
            yield keys
    finally:
        JITFunction.run = original


def keys(module: ModuleType) -> Any:
    """What is compiled for 100 lengths and 3 batches, and for 100 packs, and handles for all.

    Backwards a segment is as long as a span, at least.
    """
    spans = {"SPAN": SEGMENT} if hasattr(module, "SPAN") else {}
    out = []
    with set_to(module, **spans), uncompiled(module) as found:
        for packed in (False, True):
            for length in range(1, 101):
                run(module, length, torch.bfloat16, 128, 64, 1 if packed else 1 + length % 3,
                    [0, length // 3, length] if packed else None)  # fmt: skip
            out.append({name: len(asked) for name, asked in found.items()})
    fused = all("('enable_fp_fusion', True)" in key for asked in found.values() for key in asked)
    return {"lengths": out[0], "packs": out[1], "handles": len(module._COMPILED), "fused": fused}


def captured(module: ModuleType) -> Any:
    """Operators that a call runs from a state, the second time: all that a graph would hold."""
    layer = getattr(module, module.__all__[0])(**sizes_of(module, 128, 64), dtype=torch.bfloat16)
    names = list(inspect.signature(layer.forward).parameters)
    given = [torch.zeros(2, 40, 128, dtype=torch.bfloat16) for _ in names[: names.index("state")]]
    state = layer.initial_state(2)
    with uncompiled(module), torch.no_grad():
        layer(*given, state, return_state=True)
        with torch.profiler.profile() as seen:
            layer(*given, state, return_state=True)
    return sorted({event.name for event in seen.events()})


def same(module: ModuleType) -> Any:
    """What is launched by Triton's path, by handles, and when no version has those."""
    out = []
    with recording(module) as (seen, through):
        for handles in (module.HANDLES, module.HANDLES, ()):
            if not handles:
                module.HANDLES = handles
                forget(module)
            seen.clear(), through.clear(), driver.active.numbers.clear()
            with nothing_freed():
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


def forget(module: ModuleType) -> None:
    """Lets a module forget its handles."""
    module._COMPILED.clear()
    getattr(module, "_PLANS", {}).clear()


def operators(module: ModuleType) -> dict[str, tuple[Any, list[Any]]]:
    """The operators of a layer on 40 tokens, forwards and backwards, and their arguments."""
    spy = OperatorSpy(module.NAMESPACE)
    with spy:
        run(module, 40, torch.bfloat16, 128, 64)
    calls = {c.op.name().rpartition("::")[2]: c for c in spy.calls}

    def dense(x: Any) -> Any:
        return x.detach().contiguous() if isinstance(x, torch.Tensor) else x

    return {name: (c.op, list(map(dense, c.args))) for name, c in calls.items()}


def calls(module: ModuleType) -> Any:
    """Functions of Python, and of C by Python, that a call of an operator runs the third time."""
    out = {}
    with uncompiled(module), torch.no_grad():
        with torch.enable_grad():
            found = operators(module)
        for name, (op, arguments) in found.items():
            counts = {"call": 0, "c_call": 0}

            def count(frame: Any, event: str, arg: Any, counts: dict[str, int] = counts) -> None:
                if event in counts:
                    counts[event] += 1

            op(*arguments), op(*arguments)
            sys.setprofile(count)
            op(*arguments)
            sys.setprofile(None)
            out[name] = counts["call"], counts["c_call"] - 1  # the last one ends the count
    return out


def planned(module: ModuleType) -> Any:
    """Kernels that Triton's path starts, of calls alike but for what each name says."""
    started: list[str] = []
    out = {}
    with uncompiled(module, started), torch.no_grad():
        with torch.enable_grad():
            op, given = operators(module)["forward"]
        q, *rest = given
        shifted = torch.zeros(q.numel() + 1, dtype=q.dtype)[1:].view(q.shape)
        turned = q.transpose(1, 2).contiguous().transpose(1, 2)
        tiles, others = ({row: (64, 16, warps, 1) for row in module.TILES} for warps in (1, 2))

        def count(name: str, x: torch.Tensor = q) -> None:
            started.clear()
            op(x, *rest)
            out[name] = len(started)

        forget(module)
        count("first"), count("second")
        count("at a multiple of 2 bytes", shifted), count("strided", turned)
        count("in float16", q.half())
        with set_to(module, TILES=tiles):
            count("with other tiles")
        module.TILES.update(others)
        count("with tiles changed in place")
        triton.knobs.runtime.launch_enter_hook.add(print)
        count("watched")
        triton.knobs.runtime.launch_enter_hook.remove(print)
        count("at last")
        module.TRUST[torch.device("cpu"), torch.bfloat16] = "a test"
        count("not trusted")
    return out


def main() -> None:
    """Prints what the argument names, `<what>/<spec>`."""
    what, _, spec = sys.argv[1].partition("/")
    with tempfile.TemporaryDirectory() as folder:
        module = module_of(spec, Path(folder))
        asked = {f.__name__: f for f in (lengths, keys, captured, same, aligned, calls, planned)}
        print(json.dumps(asked[what](module)))


if __name__ == "__main__":
    main()
