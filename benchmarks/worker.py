"""One measurement in a process of its own.

python -m benchmarks.worker <job as JSON>

Jobs: `check` runs every contender once against the float64 recurrence; `memory` runs one of them
once, in a process that has run nothing of that size before; `serve` runs one whenever it is told
to. Each answer is a line of JSON on the standard output.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks import emitted, memory
from benchmarks.contender import OURS, Contender, Tensors, Work
from benchmarks.table import Row, row
from benchmarks.workload import Sizes
from dsfc.validate.compare import relative_error

Job = Mapping[str, Any]
Answer = dict[str, Any]
_SEED = 2024
_SMALL = 8
"""Before memory is measured an eighth of the length is run, which loads libraries and threads."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A row with its module: makes contenders and their arguments.

    Attributes:
        row: the comparison.
        module: what was emitted of its spec.
        sizes: the row's, or at the length of the job.
    """

    row: Row
    module: Any
    sizes: Sizes

    @classmethod
    def of(cls, job: Job, shrink: int = 1) -> Stage:
        """The stage of a job, its length divided by `shrink`."""
        chosen = row(job["row"])
        chosen = chosen.quick() if job["quick"] else chosen
        length = job.get("length") or chosen.sizes["L"]
        return cls(chosen, emitted.load(job["module"]), chosen.at(max(length // shrink, 1)))

    def tensors(self) -> tuple[dict[str, Tensor], Tensor]:
        """Returns the arguments and the output's cotangent, the same in every process."""
        generator = torch.Generator().manual_seed(_SEED)
        tensors = self.row.work.draw(self.module, self.sizes, generator)
        y = self.ours(tensors).forward(tensors)
        return tensors, torch.randn(y.shape, generator=generator)

    def ours(self, tensors: Tensors, mode: str = "auto") -> Contender:
        """The emitted module as a contender."""
        names = tuple(name for name in tensors if name not in self.row.work.for_peers)
        run = self.row.work.ours(self.module, self.sizes, mode)
        return Contender(OURS, "emitted by dsfc", run, names)

    def contenders(self, tensors: Tensors) -> tuple[Contender, ...]:
        """Ours and the peers."""
        return (self.ours(tensors), *self.row.peers)

    def ready(self, name: str) -> tuple[Contender, dict[str, Tensor], Tensor]:
        """Returns a contender, its arguments and its cotangent."""
        tensors, cotangent = self.tensors()
        contender = {c.name: c for c in self.contenders(tensors)}[name]
        return contender, contender.lay_out(tensors), contender.cotangent(cotangent)


def check(job: Job) -> Iterator[Answer]:
    """Compares outputs and gradients of all contenders with those of the float64 recurrence."""
    stage = Stage.of(job)
    tensors, cotangent = stage.tensors()
    wide = {name: x.to(_wide(x)) for name, x in tensors.items()}
    truth = stage.ours(tensors, "recurrent").results(wide, cotangent.double())
    errors: dict[str, dict[str, float]] = {}
    failures: dict[str, str] = {}
    for contender in stage.contenders(tensors):
        try:
            got = contender.results(tensors, cotangent)
        except Exception as error:
            if not contender.context:
                raise
            failures[contender.name] = traceback.format_exception_only(error)[-1].strip()
            continue
        shared = [name for name in truth if name in got]
        errors[contender.name] = {name: relative_error(got[name], truth[name]) for name in shared}
    yield {"errors": errors, "failures": failures}


def peak(job: Job) -> Iterator[Answer]:
    """Yields bytes: the process's peak and what is unavoidable, over a process that is ready."""
    work, name = Work(job["work"]), job["contender"]
    _run(work, *Stage.of(job, shrink=_SMALL).ready(name))
    memory.reset_peak()
    before = memory.resident()
    stage = Stage.of(job)
    contender, arguments, cotangent = stage.ready(name)
    memory.reset_peak()
    results = _run(work, contender, arguments, cotangent)
    most = memory.peak()
    held = (*arguments.values(), cotangent, *results)
    yield {
        "peak": most - before,
        "unavoidable": sum(x.numel() * x.element_size() for x in held),
        "chunk": getattr(stage.module, "CHUNK", None),
    }


def serve(job: Job) -> Iterator[Answer]:
    """Yields the time of one run for each line of the standard input that names a work."""
    stage = Stage.of(job)
    calls = stage.row.calls
    contender, arguments, cotangent = stage.ready(job["contender"])
    yield {"ready": True}
    for line in sys.stdin:
        work = Work(line.strip())
        gc.collect()
        gc.disable()
        waited, start = _waited(), time.perf_counter()
        for _ in range(calls):
            results = _run(work, contender, arguments, cotangent)
        seconds = (time.perf_counter() - start) / calls
        waited = (_waited() - waited) / calls
        gc.enable()
        del results
        yield {"seconds": seconds, "waited": waited}


def _run(
    work: Work, contender: Contender, arguments: Tensors, cotangent: Tensor
) -> tuple[Tensor, ...]:
    if work is Work.FORWARD:
        return (contender.forward(arguments),)
    y, gradients = contender.training(arguments, cotangent)
    return y, *gradients.values()


def _waited() -> float:
    """Seconds that all threads of this process stood in the queue for a core; 0 if not known."""
    nanoseconds = 0
    for file in Path("/proc/self/task").glob("*/schedstat"):
        with suppress(OSError):  # a thread that has ended
            nanoseconds += int(file.read_text().split()[1])
    return nanoseconds / 1e9


def _wide(x: Tensor) -> torch.dtype:
    return torch.complex128 if x.is_complex() else torch.float64


JOBS: Mapping[str, Callable[[Job], Iterator[Answer]]] = {
    "check": check,
    "memory": peak,
    "serve": serve,
}


def main() -> None:
    """Does the job of the command line."""
    job = json.loads(sys.argv[1])
    # What libraries print must not get between the answers.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    torch.set_num_threads(job["threads"])
    for answer in JOBS[job["job"]](job):
        print(json.dumps(answer), file=answers)


if __name__ == "__main__":
    main()
