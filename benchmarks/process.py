"""Starts the processes that measure, and asks them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import Enum
from types import TracebackType
from typing import Any, Self

from benchmarks.clock import Run
from benchmarks.contender import Work
from benchmarks.emitted import ROOT

_PAUSE = 0.02
"""Seconds between two runs, in which the threads of the one before go to sleep."""

_LONG_PAUSE = 0.3
"""Seconds after a run that others disturbed."""


class Allocator(Enum):
    """What glibc does with the memory of large tensors.

    Left alone it maps each afresh or takes what was freed before, depending on what the process
    freed earlier.
    """

    SYSTEM = "system"
    """Left alone."""

    KEEP = "keep"
    """Never maps a tensor by itself, never gives freed memory back."""

    MAP = "map"
    """Maps every large tensor afresh, and gives it back when it is freed."""

    @property
    def variables(self) -> dict[str, str]:
        """What glibc reads from the environment."""
        match self:
            case Allocator.KEEP:
                return {
                    "MALLOC_MMAP_THRESHOLD_": str(2**32),
                    "MALLOC_TRIM_THRESHOLD_": str(2**40),
                }
            case Allocator.MAP:
                return {"MALLOC_MMAP_THRESHOLD_": str(2**17)}
            case Allocator.SYSTEM:
                return {}


class MeasurementError(Exception):
    """A process that measures ended with an error; the message is the end of what it said."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """What all processes of a measurement share.

    Attributes:
        threads: of torch and of the libraries below it.
        quick: whether rows are shortened.
        allocator: how glibc is told to behave.
    """

    threads: int = 2
    quick: bool = False
    allocator: Allocator = Allocator.SYSTEM

    def environment(self) -> dict[str, str]:
        """Variables for a process."""
        threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), str(self.threads))
        bare = {key: value for key, value in os.environ.items() if not key.startswith("MALLOC_")}
        return bare | threads | self.allocator.variables


def ask(conditions: Conditions, **job: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """Has a job with one answer done.

    Raises:
        MeasurementError: the process failed.
    """
    with Worker(conditions, **job) as worker:
        return worker.answer()


class Worker(AbstractContextManager["Worker"]):
    """A process of `benchmarks.worker`.

    Args:
        conditions: threads and allocator.
        job: as `benchmarks.worker` takes it.
    """

    def __init__(self, conditions: Conditions, **job: Any) -> None:  # noqa: ANN401 - JSON
        text = json.dumps({"threads": conditions.threads, "quick": conditions.quick, **job})
        self._said = tempfile.TemporaryFile("w+")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.worker", text],
            cwd=ROOT,
            env=conditions.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            text=True,
        )

    def answer(self) -> dict[str, Any]:
        """Returns the next answer.

        Raises:
            MeasurementError: the process ended instead.
        """
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            self._said.seek(0)
            raise MeasurementError("\n".join(self._said.read().strip().splitlines()[-12:]))
        answer: dict[str, Any] = json.loads(line)
        return answer

    def run(self, work: Work) -> Run:
        """Has a serving process run once."""
        assert self._process.stdin is not None
        time.sleep(_PAUSE)
        self._process.stdin.write(f"{work.value}\n")
        self._process.stdin.flush()
        answer = self.answer()
        run = Run(answer["seconds"], answer["waited"])
        if run.disturbed:
            time.sleep(_LONG_PAUSE)
        return run

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Ends the process."""
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._said.close()
