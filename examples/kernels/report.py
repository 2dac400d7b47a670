"""What was learnt as a table and as four pictures. Every number in a title is computed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from rich.console import Console
from rich.markdown import Markdown

from harness import charts
from kernels.model import CONVOLUTIONS
from kernels.task import NAMES as TASKS
from kernels.task import Task, best_convolution
from kernels.train import DIGITS, Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAMES = {"dlr": "DLR", "s4d": "S4D", "gla": "GLA"}
COLOURS = {"dlr": charts.BLUE, "s4d": charts.VERMILION, "gla": charts.GREEN}

PAPER = {"shift": ("1", ".99"), "cumsum": ("1", "1"), "cummax": (".52", ".51")}
"""R² of one layer of DLR and of DSS, Gupta et al. 2022, table 1: L = N = 4096, H = 128."""

FITTED = 16384
"""Sequences that the best convolution is fitted to."""


@cache
def ceiling(task: Task) -> tuple[float, torch.Tensor]:
    """Returns the R² and the kernel `[L, C]` of the best convolution: the exact one, or a fit."""
    if task.kernel is not None:
        return 1.0, task.kernel
    x, y = task.batch(FITTED, torch.Generator().manual_seed(0))
    return best_convolution(x, y, task.scale)


def caption(result: Result) -> str:
    """Names a result in a few words."""
    run = result.run
    return f"{NAMES[run.mixer]} on {run.task.name.upper()}: R² {result.r_squared:.3f}"


def table(results: Sequence[Result], seconds: float) -> str:
    """Returns the comparison in Markdown: a row per task, a column per mixer."""
    mixers = [name for name in NAMES if any(r.run.mixer == name for r in results)]
    head = (*(NAMES[name] for name in mixers), "best convolution", "DLR, paper", "DSS, paper")
    lines = [_row("R²", head), _row("---", ["---"] * len(head))]
    for task in _tasks(results):
        reached = [_find(results, name, task).r_squared for name in mixers]
        limit, _ = ceiling(task)
        shown = (f"{number:.4f}" for number in (*reached, limit))
        lines.append(_row(task.name.upper(), (*shown, *PAPER[task.name])))
    spent = [sum(r.cpu_seconds for r in results if r.run.mixer == name) for name in mixers]
    counts = [max(r.parameters for r in results if r.run.mixer == name) for name in mixers]
    blank = [""] * (len(head) - len(mixers))
    lines.append(_row("parameters, at most", (*(f"{count:,}" for count in counts), *blank)))
    lines.append(_row("processor time, s", (*(f"{number:.0f}" for number in spent), *blank)))
    steps = max(r.run.steps for r in results)
    note = (
        f"{len(results)} runs of {steps} steps in {seconds:.0f} s, "
        f"{sum(spent):.0f} s of processor time."
    )
    return "\n".join([*lines, "", note, ""])


def show(results: Sequence[Result], seconds: float) -> None:
    """Prints the table."""
    Console(width=110).print(Markdown(table(results, seconds)))


def write(results: Sequence[Result], seconds: float, folder: Path) -> tuple[Path, ...]:
    """Writes the table and the pictures; returns the files."""
    path = folder / "table.md"
    path.write_text(table(results, seconds))
    pictures = {
        "r_squared": _draw_scores,
        "kernels": _draw_kernels,
        "errors": _draw_errors,
        "curves": _draw_curves,
    }
    drawn = (charts.save(draw(results), folder / f"{name}.png") for name, draw in pictures.items())
    return path, *drawn


def _draw_scores(results: Sequence[Result]) -> Figure:
    """One group per task, one bar per mixer, the best convolution as a line across."""
    tasks = _tasks(results)
    figure, axis = charts.subplots(1, 1, 7, 3.6)
    width = 0.26
    for place, mixer in enumerate(NAMES):
        at = np.arange(len(tasks)) + (place - 1) * width
        scores = [_find(results, mixer, task).r_squared for task in tasks]
        axis.bar(at, np.maximum(scores, 0), 0.9 * width, color=COLOURS[mixer], label=NAMES[mixer])
        for x, score, task in zip(at, scores, tasks, strict=True):
            limit, _ = ceiling(task)
            top = limit if 0 <= limit - score < 0.06 else max(score, 0)  # not across the line
            axis.text(x, top + 0.02, f"{score:.3f}", ha="center", fontsize="small")
    for at, task in enumerate(tasks):
        limit, _ = ceiling(task)
        label = "best convolution" if at == 0 else None
        axis.hlines(limit, at - 0.45, at + 0.45, charts.GREY, "--", linewidth=1.2, label=label)
    axis.set_xticks(range(len(tasks)), [task.name.upper() for task in tasks])
    axis.set(ylabel="R² on held-out sequences", ylim=(0, 1.12))
    charts.open_frame(axis)
    found = ", ".join(
        f"{task.name.upper()} {_find(results, 'dlr', task).r_squared:.2f}" for task in tasks
    )
    axis.set_title(f"One DLR layer: {found}")
    axis.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    return figure


def _draw_kernels(results: Sequence[Result]) -> Figure:
    """A row per mixer, a column per task: what was learnt over what is best."""
    tasks = _tasks(results)
    rows, columns = len(CONVOLUTIONS), len(tasks)
    figure, axes = charts.subplots(
        rows, columns, 3.8 * columns, 2.4 * rows, sharex=True, sharey="col"
    )
    for mixer, row in zip(CONVOLUTIONS, axes, strict=True):
        for task, axis in zip(tasks, row, strict=True):
            result = _find(results, mixer, task)
            best = ceiling(task)[1].numpy()
            kernel = np.array(result.kernel).T
            lags = np.arange(task.length)
            axis.plot(lags, kernel, color=COLOURS[mixer], linewidth=0.9)
            if task.name == "shift":
                peak, output = np.nonzero(best)
                axis.plot(peak, best[peak, output], "o", color="black", mfc="none", ms=7)
            else:
                axis.plot(lags, best, "--", color="black", linewidth=1.2)
            axis.set_title(f"{task.name.upper()}, {NAMES[mixer]}: R² {result.r_squared:.3f}")
            charts.open_frame(axis)
        row[0].set_ylabel("kernel")
    for axis in axes[-1]:
        axis.set_xlabel("lag")
        axis.set_ylim(bottom=min(0, axis.get_ylim()[0]))
    figure.suptitle(
        "SHIFT and CUMSUM ask for one kernel per output (black);"
        " CUMMAX has none, and black is its least squares fit"
    )
    return figure


def _draw_errors(results: Sequence[Result]) -> Figure:
    """How far kernels are from the exact ones: the worst output, lag by lag; CUMMAX has none."""
    tasks = [task for task in _tasks(results) if task.kernel is not None]
    figure, axes = charts.subplots(1, len(tasks), 4.6 * len(tasks), 3.4, sharey=True)
    worst = 0.0
    for task, axis in zip(tasks, axes, strict=True):
        for mixer in CONVOLUTIONS:
            kernel = np.array(_find(results, mixer, task).kernel).T
            error = np.abs(kernel - ceiling(task)[1].numpy()).max(1)
            axis.plot(
                np.maximum(error, 10.0**-DIGITS),
                color=COLOURS[mixer],
                linewidth=0.9,
                label=NAMES[mixer],
            )
            if mixer == "dlr":
                worst = max(worst, float(error.max()))
        axis.axhline(1, color=charts.LIGHT, linewidth=0.8)
        axis.set(title=task.name.upper(), xlabel="lag", yscale="log")
        charts.open_frame(axis)
    axes[0].set_ylabel("error of the kernel (1: its height)")
    axes[-1].legend(frameon=False)
    figure.suptitle(f"DLR's kernels are within {worst:.2g} of the exact ones at every lag")
    return figure


def _draw_curves(results: Sequence[Result]) -> Figure:
    """What is left to explain against the steps."""
    tasks = _tasks(results)
    figure, axes = charts.subplots(1, len(tasks), 3.6 * len(tasks), 3.4, sharey=True)
    for task, axis in zip(tasks, axes, strict=True):
        for mixer in NAMES:
            steps, scores = zip(*_find(results, mixer, task).curve, strict=True)
            left = 1 - np.array(scores)
            axis.plot(steps, left, color=COLOURS[mixer], label=NAMES[mixer], linewidth=1.3)
        limit = 1 - ceiling(task)[0]
        if limit > LEAST:
            axis.axhline(limit, color="black", linestyle="--", linewidth=1)
            axis.text(1, limit * 0.7, "best convolution", fontsize="small", va="top")
        axis.set(title=_passes(task, results), xlabel="steps of 16 sequences", yscale="log")
        charts.open_frame(axis)
    axes[0].set(ylabel="1 - R² (less is better)", ylim=(LEAST, 3))
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right center", frameon=False)
    return figure


def _passes(task: Task, results: Sequence[Result]) -> str:
    """Says when DLR knows the task."""
    curve = _find(results, "dlr", task).curve
    known = next((step for step, score in curve if score >= KNOWN), None)
    when = f"never over {KNOWN}" if known is None else f"over {KNOWN} after {known} steps"
    return f"{task.name.upper()}\nDLR {when}"


KNOWN = 0.99
"""R² from which a task counts as learnt."""

LEAST = 1e-6
"""The smallest 1 - R² that is drawn."""


def _tasks(results: Sequence[Result]) -> list[Task]:
    return sorted({r.run.task for r in results}, key=lambda task: TASKS.index(task.name))


def _find(results: Sequence[Result], mixer: str, task: Task) -> Result:
    return next(r for r in results if (r.run.mixer, r.run.task) == (mixer, task))


def _row(name: str, cells: Iterable[str]) -> str:
    return f"| {' | '.join((name, *cells))} |"
