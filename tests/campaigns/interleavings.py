"""Runs random interleavings of what is done with states, and says which came out wrong.

    python tests/campaigns/interleavings.py --count 10000 [--seed N] [--jobs N] [--mixers NAMES]
        [--exact] [--backend c]

One mixer of each class of structure is run unless `--mixers` names some, `all` for all of them;
each runs `count` interleavings of seeds `seed`, `seed + 1`, … `--exact` runs them in mode `exact`,
where outputs are compared bit for bit. Without `--seed` one is drawn and printed. Exit code 1 where
something failed.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import tempfile
import time
from functools import cache, partial
from pathlib import Path
from random import SystemRandom
from types import ModuleType

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "specs"))

import torch
from emitted import SPECS, compiled
from interleaving import interleave

import dsfc

_AT_A_TIME = 20
_SHOWN = 3


@cache
def _module(path: Path) -> ModuleType:
    torch.set_num_threads(1)
    return dsfc.import_module(path)


def failures(job: tuple[Path, int], stop: int, exact: bool) -> list[str]:
    """Returns what was wrong in some interleavings.

    Args:
        job: the module, and the first seed.
        stop: the seed behind the last one.
        exact: whether they run in mode `exact`.
    """
    path, first = job
    wrong = []
    for seed in range(first, min(first + _AT_A_TIME, stop)):
        try:
            interleave(_module(path), seed, exact)
        except AssertionError as e:
            wrong.append(str(e))
    return wrong


def chosen(names: str) -> list[str]:
    """Returns the mixers of an option: those named, all, or one of each class."""
    if names not in ("", "all"):
        return names.split(",")
    by_class: dict[str, str] = {}
    for name in compiled():
        loaded = dsfc.load(SPECS / f"{name}.dsf")
        if loaded.plan.causal:
            by_class.setdefault(name if names else loaded.structure.title, name)
    return [*by_class.values()]


def main() -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--mixers", default="")
    parser.add_argument("--exact", action="store_true")
    parser.add_argument("--backend", default="torch", choices=["torch", "c"])
    args = parser.parse_args()
    seed = SystemRandom().randrange(10**9) if args.seed is None else args.seed
    print(f"seed {seed}, {args.count} interleavings of each", flush=True)
    failed = 0
    with (
        tempfile.TemporaryDirectory() as folder,
        multiprocessing.get_context("spawn").Pool(args.jobs) as pool,
    ):
        for name in chosen(args.mixers):
            start, out = time.perf_counter(), Path(folder, f"{name}.py")
            path = dsfc.compile(SPECS / f"{name}.dsf", out=out, backend=args.backend)
            stop = seed + args.count
            jobs = [(path, first) for first in range(seed, stop, _AT_A_TIME)]
            run = partial(failures, stop=stop, exact=args.exact)
            wrong = [text for some in pool.imap_unordered(run, jobs) for text in some]
            took = time.perf_counter() - start
            print(f"{name}: {args.count - len(wrong)} right, {len(wrong)} wrong, {took:.0f} s")
            for text in sorted(wrong)[:_SHOWN]:
                print(f"    {text}")
            sys.stdout.flush()
            failed += len(wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
