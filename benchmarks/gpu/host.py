"""The host's time for a call, measured without a GPU: all of a call but the start of its kernels.

    TRITON_INTERPRET=0 python -m benchmarks.gpu.host retnet s6 [--profile] [--segments]

Operators get tensors of the processor that are trusted like a GPU's, and Triton compiles nothing:
what it would hand back starts nothing. What a GPU's driver and allocator add is not in the figures,
and neither are the questions that only tensors of a GPU raise.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import torch

from benchmarks.calls import functions_called
from benchmarks.gpu.clock import Work
from benchmarks.gpu.material import Shape, Subject, forget, operators, subject
from dsfc.validate.surface import surface

SPECS = ("gla", "gated_deltanet", "kda", "rwkv7", "retnet", "rg_lru", "s6")
SHAPE = Shape(batch=1, length=8, heads=1, width=16)
"""So little that torch's own kernels on the processor take no time worth mentioning."""

SHORT = 4
"""Tokens of a segment where time is to be cut."""

_ROUNDS, _CALLS = 200, 20


@contextmanager
def prepared(spec: str, segments: bool = False) -> Iterator[dict[str, Work]]:
    """Gives calls of a mixer by name, each made once before, whose kernels start nothing."""
    from triton.runtime import driver
    from triton.runtime.jit import JITFunction

    of = subject(spec)
    if of is None:
        raise LookupError(f"{spec} has no kernels")
    original = JITFunction.run
    driver.set_active(_NoDriver())
    JITFunction.run = lambda self, *args, **kwargs: _handle()
    try:
        with _as_a_gpu(of.module, SHORT if segments else 0):
            op = operators(of, SHAPE, torch.bfloat16, torch.device("cpu"))[0]
            works = {
                "forward": op.outputs,
                "backward": op.gradients,
                "layer": _trained(of),
            }
            for work in works.values():
                work()
            yield works
    finally:
        JITFunction.run = original
        forget(of.module)


def _trained(of: Subject) -> Work:
    """A layer's outputs and gradients."""
    sample = surface(of.module, of.sizes(SHAPE)).sample(
        SHAPE.length, batch=SHAPE.batch, dtype=torch.bfloat16, state=False, seed=0
    )
    leaves = list(sample.layer.parameters())

    def work() -> object:
        y = sample.layer(**sample.inputs)
        return torch.autograd.grad(y, leaves, y)

    return work


def clocked(work: Work) -> float:
    """Seconds of the processor for a call: the least of means over some in a row.

    What else the machine does only adds to it.
    """
    means = []
    for _ in range(_ROUNDS):
        start = time.process_time()
        for _ in range(_CALLS):
            work()
        means.append((time.process_time() - start) / _CALLS)
    return min(means)


@contextmanager
def _as_a_gpu(module: ModuleType, segment: int) -> Iterator[None]:
    """Lets kernels run on the processor, with the tiles that an H100 has."""
    rows = sorted(row for row in module.TILES if row[3] == "cuda" and row[4] <= 90)
    known = {(*row[:4], 0): module.TILES[row] for row in rows}
    trust = {(torch.device("cpu"), torch.bfloat16): ""}
    given = {"DEVICES": ("cpu",), "TRUST": trust, "SEGMENT": segment, "TILES": known}
    before = {name: getattr(module, name) for name in given}
    vars(module).update(given)
    try:
        yield
    finally:
        vars(module).update(before)


class _NoDriver:
    """Triton's driver of a GPU that is not there."""

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0


def _handle() -> Any:  # noqa: ANN401 - a class of Triton's, which need not be installed
    """Returns a compiled kernel of Triton that does all of a start but the start itself."""
    from triton.compiler import CompiledKernel

    class Handle(CompiledKernel):  # type: ignore[misc]  # Triton has no types
        def __init__(self) -> None:
            self.name = self.module = self.function = "nothing"
            self.packed_metadata, self.src = (), None
            self._module_pid = None
            self._run = lambda *args: None

    return Handle()


def main() -> None:
    """Prints microseconds and counts of calls, and with `--profile` where they go."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("specs", nargs="*", default=SPECS)
    parser.add_argument("--profile", action="store_true", help="list the functions of a call")
    parser.add_argument("--segments", action="store_true", help="cut time into segments")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    for spec in chosen.specs:
        with prepared(spec, chosen.segments) as works:
            for way, work in works.items():
                calls = "{} and {}".format(*functions_called(work))
                seconds = clocked(work)
                print(
                    f"{spec} {way}: {1e6 * seconds:.1f} µs, {calls} calls of Python and C",
                    flush=True,
                )
                if chosen.profile:
                    _profile(work)


def _profile(work: Work) -> None:
    with cProfile.Profile() as profile:
        for _ in range(_ROUNDS):
            work()
    pstats.Stats(profile).sort_stats("tottime").print_stats(25)


if __name__ == "__main__":
    main()
