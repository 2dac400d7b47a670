"""Trains all mixers of the comparison side by side and writes what came of it.

python examples/mqar/demo.py            # everything, a few minutes on two cores
python examples/mqar/demo.py --quick    # a few steps of each, to see that it runs
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import multiprocessing
import os
import platform
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.managers import SyncManager
from pathlib import Path
from queue import Queue

import report
import torch
import train
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from task import Task

RESULTS = Path(__file__).parent / "results"
QUICK_RESULTS = Path(__file__).parents[2] / "build" / "mqar"
"""Where a run of a few steps leaves what it makes: the measured results stay as they are."""

MIXERS = ("normalized_attn", "linear_attn", "softmax")
SEEDS = (0, 1)
WIDTH = 64
SMALL = Task(vocabulary=64, length=32, pairs=4)
LARGE = Task(vocabulary=128, length=64, pairs=8)
KEYS = (8, 16, 32)
"""Key widths n on the larger task; a state has n × 64 numbers."""

QUICK = 20
"""Steps of each run with `--quick`."""


def runs() -> tuple[train.Run, ...]:
    """Lists the comparison: both tasks, all mixers, all seeds, and one run without convolution."""
    small = [
        train.Run(mixer, SMALL, WIDTH, keys=16, steps=1500, rate=5e-3, seed=seed)
        for seed in SEEDS
        for mixer in MIXERS
    ]
    large = [
        train.Run(mixer, LARGE, WIDTH, keys=keys, steps=1000, rate=3e-3, seed=seed)
        for seed in SEEDS
        for keys in KEYS
        for mixer in MIXERS
    ]
    bare = dataclasses.replace(small[0], convolution=False)
    return (*large, *small, bare)


def main() -> None:
    """Runs the comparison, one process per core, one thread each."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--quick", action="store_true", help=f"only {QUICK} steps per run")
    parser.add_argument("--out", type=Path, help="folder of the results")
    parser.add_argument("--workers", type=int, default=_cores(), help="processes to train in")
    arguments = parser.parse_args()
    todo = runs()
    out = arguments.out or (QUICK_RESULTS if arguments.quick else RESULTS)
    if arguments.quick:
        todo = tuple(dataclasses.replace(run, steps=QUICK) for run in todo)
    start = time.perf_counter()
    results = list(_train_all(todo, arguments.workers))
    results.sort(key=lambda result: todo.index(result.run))
    document = {
        "machine": _machine() | {"workers": arguments.workers},
        "seconds": round(time.perf_counter() - start, 1),
        "results": [dataclasses.asdict(result) for result in results],
    }
    out.mkdir(parents=True, exist_ok=True)
    (out / "results.json").write_text(json.dumps(document, indent=1) + "\n")
    report.show(results, document["seconds"])
    for path in (out / "results.json", *report.draw(results, out)):
        print(f"wrote {path}")


def _train_all(todo: tuple[train.Run, ...], workers: int) -> Iterator[train.Result]:
    """Yields results as they come, with a bar for all steps and what is being trained."""
    spawn = multiprocessing.get_context("spawn")
    columns = (TextColumn("training"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with (
        spawn.Manager() as manager,
        Progress(*columns, TextColumn("{task.fields[last]}")) as progress,
        ProcessPoolExecutor(
            workers, spawn, initializer=torch.set_num_threads, initargs=(1,)
        ) as pool,
    ):
        steps = progress.add_task("", total=sum(run.steps for run in todo), last="")
        queue = _queue(manager)
        pending = {pool.submit(_train, run, queue) for run in todo}
        while pending:
            while not queue.empty():
                progress.advance(steps, queue.get())
            for future in [future for future in pending if future.done()]:
                pending.remove(future)
                result = future.result()
                last = f"{report.title(result.run)}: {result.accuracy:.2f}"
                progress.update(steps, last=last)
                yield result
            time.sleep(0.1)


def _queue(manager: SyncManager) -> Queue[int]:
    return manager.Queue()


def _train(run: train.Run, queue: Queue[int]) -> train.Result:
    return train.train(run, queue.put)


def _cores() -> int:
    """Cores this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _machine() -> dict[str, str | int]:
    """What the numbers were measured on."""
    return {
        "system": platform.system(),
        "processor": _processor(),
        "cores": _cores(),
        "python": platform.python_version(),
        "torch": torch.__version__,
    }


def _processor() -> str:
    """The processor's name, where the system tells."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


if __name__ == "__main__":
    main()
