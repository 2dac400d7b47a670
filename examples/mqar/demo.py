"""Trains mixers side by side and writes what came of it.

`bash examples/mqar/run.sh` calls it: seconds on two cores, minutes with `--full`.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from harness.comparison import Comparison
from mqar import report, train
from mqar.task import Task

MIXERS = ("normalized_attn", "linear_attn", "softmax")
SEEDS = (0, 1)
WIDTH = 64
SMALL = Task(vocabulary=64, length=32, pairs=4)
LARGE = Task(vocabulary=128, length=64, pairs=8)
KEYS = (8, 16, 32)
"""Key widths n on the larger task; a state has n × 64 numbers."""


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


def first_runs() -> tuple[train.Run, ...]:
    """Lists what a first look needs: each mixer once, on the smaller task, in fewer steps."""
    return tuple(train.Run(m, SMALL, WIDTH, keys=16, steps=700, rate=5e-3, seed=0) for m in MIXERS)


if __name__ == "__main__":
    Comparison(
        folder=Path(__file__).parent,
        runs=runs(),
        first=first_runs(),
        train=train.train,
        result=train.Result,
        caption=report.caption,
        show=report.show,
        write=report.write,
        quick=5,
    ).main()
