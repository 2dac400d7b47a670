"""Trains one layer of each mixer on each task and writes what came of it.

`bash examples/kernels/run.sh` calls it; about three minutes on two cores.
"""

from __future__ import annotations

from pathlib import Path

from harness.comparison import Comparison
from kernels import report, train
from kernels.model import make_mixer
from kernels.task import NAMES, Task
from kernels.train import BATCH

LENGTH = 256
STEPS = 350
RATES = {"s4d": (1e-2, 3e-2), "dlr": (5e-3, 1e-3), "gla": (1e-2, 3e-2)}
"""Per mixer, the rate of all but Λ, and that of Λ."""


def runs() -> tuple[train.Run, ...]:
    """Lists the comparison: all mixers, all tasks, one seed."""
    return tuple(
        train.Run(mixer, Task(name, LENGTH), STEPS, rate, transition_rate, seed=0)
        for mixer, (rate, transition_rate) in RATES.items()
        for name in NAMES
    )


if __name__ == "__main__":
    for mixer in RATES:
        print(f"{mixer}: {make_mixer(mixer).explain(LENGTH, BATCH)}")
    Comparison(
        folder=Path(__file__).parent,
        runs=runs(),
        first=runs(),
        train=train.train,
        result=train.Result,
        caption=report.caption,
        show=report.show,
        write=report.write,
        quick=5,
    ).main()
