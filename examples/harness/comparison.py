"""A comparison: runs trained side by side, one process per core, and the record of what came of it.

An example describes its `Comparison` and calls `main`; this is its command line:

--full     all runs; without it those that a first look needs, where an example has so many
--quick    a few steps of each run, to see that it works
--record   into the example's own folder `results`, which the repository keeps; all runs
--out      the folder of the results, `build/<example>` if not given
--workers  the processes to train in
--redraw   no training: the table and the pictures again, from the record in the folder
"""

from __future__ import annotations

import argparse
import dataclasses
import multiprocessing
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing.managers import SyncManager
from pathlib import Path
from queue import Queue
from typing import Any, Generic, Protocol, TypeVar

import torch
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from harness import record
from harness.folders import BUILD


class Run(Protocol):
    """What one run is: a frozen dataclass that says how many steps it takes."""

    @property
    def steps(self) -> int:
        """How many batches are seen."""
        ...


R = TypeVar("R", bound=Run)
S = TypeVar("S")
Train = Callable[[R, Callable[[int], None]], S]
"""Trains a run and returns its result; calls its second argument with the steps done since."""


@dataclass(frozen=True, slots=True)
class Comparison(Generic[R, S]):
    """What is compared and how it is told.

    Attributes:
        folder: of the example; its name is the example's.
        runs: all that is compared, what takes longest first.
        first: those of them that are trained unless all are asked for.
        train: trains one run; a function of a module, since it goes to other processes.
        result: the class of a result, a frozen dataclass.
        caption: names a result in a few words, while the others are being trained.
        show: prints the results and the seconds they took.
        write: writes what there is beside `results.json` into a folder; returns the files.
        quick: steps of each run with `--quick`.
    """

    folder: Path
    runs: tuple[R, ...]
    first: tuple[R, ...]
    train: Train[R, S]
    result: type[S]
    caption: Callable[[S], str]
    show: Callable[[Sequence[S], float], None]
    write: Callable[[Sequence[S], float, Path], Sequence[Path]]
    quick: int

    def main(self) -> None:
        """Trains everything, prints the table and writes the files."""
        parser = argparse.ArgumentParser(
            description=__doc__,
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        parser.add_argument("--full", action="store_true", help="all runs")
        parser.add_argument("--record", action="store_true", help="all, kept in the repository")
        parser.add_argument("--quick", action="store_true", help=f"only {self.quick} steps per run")
        parser.add_argument("--out", type=Path, help="folder of the results")
        parser.add_argument("--workers", type=int, default=record.cores(), help="processes")
        parser.add_argument("--redraw", action="store_true", help="from the record; no training")
        arguments = parser.parse_args()
        kept, tried = self.folder / "results", BUILD / self.folder.name
        out = arguments.out or (kept if arguments.record else tried)
        file = out / "results.json"
        if not arguments.redraw:
            todo: Sequence[Any] = self.runs if arguments.full or arguments.record else self.first
            if arguments.quick:
                todo = [dataclasses.replace(run, steps=self.quick) for run in todo]
            start = time.perf_counter()
            results = self._train(todo, arguments.workers)
            seconds = round(time.perf_counter() - start, 1)
            record.write(file, results, seconds, arguments.workers)
            print(f"wrote {file}")
        results, seconds = record.read(file, self.result)
        self.show(results, seconds)
        for path in self.write(results, seconds, out):
            print(f"wrote {path}")

    def _train(self, todo: Sequence[R], workers: int) -> list[S]:
        """Returns the results in the order of the runs.

        A terminal shows a bar for the steps of all, a file or pipe gets a line for each run.
        """
        spawn = multiprocessing.get_context("spawn")
        columns = (TextColumn("training"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with (
            spawn.Manager() as manager,
            Progress(
                *columns,
                TextColumn("{task.fields[last]}"),
                disable=not sys.stdout.isatty(),
            ) as progress,
            ProcessPoolExecutor(
                workers, spawn, initializer=torch.set_num_threads, initargs=(1,)
            ) as pool,
        ):
            steps = progress.add_task("", total=sum(run.steps for run in todo), last="")
            queue = _queue(manager)
            futures = [pool.submit(_call, self.train, run, queue) for run in todo]
            pending = set(futures)
            while pending:
                time.sleep(0.1)
                for future in {future for future in pending if future.done()}:
                    pending.remove(future)
                    last = self.caption(future.result())
                    progress.update(steps, last=last)
                    if not progress.console.is_terminal:
                        count = len(futures) - len(pending)
                        print(f"{count} of {len(futures)} runs: {last}", flush=True)
                while not queue.empty():
                    progress.advance(steps, queue.get())
            return [future.result() for future in futures]


def _queue(manager: SyncManager) -> Queue[int]:
    return manager.Queue()


def _call(train: Train[R, S], run: R, queue: Queue[int]) -> S:
    return train(run, queue.put)
