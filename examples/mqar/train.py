"""One run: a model, its data, its optimiser, and the accuracy along the way."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from harness.schedule import warm_cosine
from mqar.model import Model
from mqar.task import IGNORED, Task

BATCH = 64
WARM_UP = 100
"""Steps over which the learning rate rises, before it falls along a cosine."""

WEIGHT_DECAY = 0.1
CLIP = 1.0
"""Largest norm of the gradient."""

EVERY = 50
"""Steps between two measurements."""

HELD_OUT = 256
"""Sequences per measurement."""

FINAL = 2048
"""Sequences of the last measurement."""

_HELD_OUT_SEED = 1_000_003
"""Training draws from the run's own seed, all measurements from this one."""


@dataclass(frozen=True, slots=True)
class Run:
    """What one run is.

    Attributes:
        mixer: `normalized_attn`, `linear_attn` or `softmax`.
        task: the sizes of the task.
        width: d.
        keys: n.
        steps: how many batches of 64.
        rate: the largest learning rate.
        seed: of the initial weights and of the data.
        convolution: whether each layer starts with the convolution of width 2.
    """

    mixer: str
    task: Task
    width: int
    keys: int
    steps: int
    rate: float
    seed: int
    convolution: bool = True


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a run.

    Attributes:
        run: the run.
        curve: pairs (step, accuracy on held-out sequences).
        accuracy: after the last step, on `FINAL` held-out sequences.
        parameters: how many numbers were trained.
        seconds: wall-clock time.
    """

    run: Run
    curve: tuple[tuple[int, float], ...]
    accuracy: float
    parameters: int
    seconds: float


def train(run: Run, advance: Callable[[int], None]) -> Result:
    """Trains one model from scratch.

    Args:
        run: what to train.
        advance: called with the number of steps done since the last call.
    """
    start = time.perf_counter()
    torch.manual_seed(run.seed)
    generator = torch.Generator().manual_seed(run.seed)
    task = run.task
    model = Model(
        run.mixer, task.vocabulary, task.length, run.width, run.keys, convolution=run.convolution
    )
    optimiser = torch.optim.AdamW(
        model.parameters(), lr=run.rate, weight_decay=WEIGHT_DECAY, fused=True
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: warm_cosine(step, run.steps, WARM_UP)
    )
    curve = [(0, accuracy(model, task, HELD_OUT))]
    for step in range(1, run.steps + 1):
        tokens, targets = task.batch(BATCH, generator)
        asked = targets != IGNORED
        loss = F.cross_entropy(model(tokens, asked), targets[asked])
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimiser.step()
        schedule.step()
        if step % EVERY == 0 or step == run.steps:
            curve.append((step, accuracy(model, task, HELD_OUT)))
            advance(step - curve[-2][0])
    return Result(
        run=run,
        curve=tuple(curve),
        accuracy=accuracy(model, task, FINAL),
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        seconds=time.perf_counter() - start,
    )


@torch.no_grad()
def accuracy(model: Model, task: Task, sequences: int) -> float:
    """Returns the share of questions answered right, over held-out sequences."""
    generator = torch.Generator().manual_seed(_HELD_OUT_SEED)
    right = total = 0
    for _ in range(sequences // BATCH):
        tokens, targets = task.batch(BATCH, generator)
        asked = targets != IGNORED
        right += int((model(tokens, asked).argmax(-1) == targets[asked]).sum())
        total += int(asked.sum())
    return right / total
