"""One run: a model, fresh sequences, Adam with a rate of its own for Λ, and R² along the way."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

from harness.schedule import warm_cosine
from kernels.model import CONVOLUTIONS, TRANSITION, Model
from kernels.task import Task, r_squared

BATCH = 16
WARM_UP = 20
BETAS = (0.9, 0.95)

EVERY = 10
"""Steps between two measurements."""

HELD_OUT = 128
"""Sequences per measurement."""

FINAL = 4096
"""Sequences of the last measurement."""

DIGITS = 5
"""Significant digits of a kernel in the record."""

_HELD_OUT_SEED = 1_000_003
"""Training draws from the run's own seed, all measurements from this one."""


@dataclass(frozen=True, slots=True)
class Run:
    """What one run is.

    Attributes:
        mixer: `dlr`, `s4d` or `gla`.
        task: what is learnt.
        steps: how many batches of 16.
        rate: the largest learning rate of all but Λ.
        transition_rate: that of the parameters of Λ. Nothing decays.
        seed: of the initial weights and of the data.
    """

    mixer: str
    task: Task
    steps: int
    rate: float
    transition_rate: float
    seed: int


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a run.

    Attributes:
        run: the run.
        curve: pairs (step, R² on held-out sequences).
        r_squared: after the last step, on `FINAL` held-out sequences.
        parameters: how many numbers were trained.
        kernel: per output, its L numbers; nothing if the model is no convolution.
        seconds: wall-clock time.
        cpu_seconds: time of the processor.
    """

    run: Run
    curve: tuple[tuple[int, float], ...]
    r_squared: float
    parameters: int
    kernel: tuple[tuple[float, ...], ...]
    seconds: float
    cpu_seconds: float


def train(run: Run, advance: Callable[[int], None]) -> Result:
    """Trains one model from scratch.

    Args:
        run: what to train.
        advance: called with the number of steps done since the last call.
    """
    start, cpu_start = time.perf_counter(), time.process_time()
    torch.manual_seed(run.seed)
    generator = torch.Generator().manual_seed(run.seed)
    model = Model(run.mixer, run.task)
    optimiser = torch.optim.Adam(_groups(model, run), betas=BETAS)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: warm_cosine(step, run.steps, WARM_UP)
    )
    curve = [(0, measure(model, run.task, HELD_OUT))]
    for step in range(1, run.steps + 1):
        x, y = run.task.batch(BATCH, generator)
        loss = (model(x) - y).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
        if step % EVERY == 0 or step == run.steps:
            curve.append((step, measure(model, run.task, HELD_OUT)))
            advance(step - curve[-2][0])
    return Result(
        run=run,
        curve=tuple(curve),
        r_squared=measure(model, run.task, FINAL),
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        kernel=_rows(model) if run.mixer in CONVOLUTIONS else (),
        seconds=time.perf_counter() - start,
        cpu_seconds=time.process_time() - cpu_start,
    )


@torch.no_grad()
def measure(model: Model, task: Task, sequences: int) -> float:
    """Returns R² over held-out sequences."""
    x, y = task.batch(sequences, torch.Generator().manual_seed(_HELD_OUT_SEED))
    return r_squared(torch.cat([model(part) for part in x.split(HELD_OUT)]), y)


def _groups(model: Model, run: Run) -> list[dict[str, object]]:
    """Parameters of Λ, and all others, each with its rate."""
    own = [getattr(model.mixer, name) for name in TRANSITION[run.mixer]]
    others = [p for p in model.parameters() if all(p is not parameter for parameter in own)]
    return [
        {"params": own, "lr": run.transition_rate},
        {"params": others, "lr": run.rate},
    ]


def _rows(model: Model) -> tuple[tuple[float, ...], ...]:
    rows = model.kernel().T.tolist()
    return tuple(tuple(float(f"{number:.{DIGITS}g}") for number in row) for row in rows)
