"""The comparison as a table and as two pictures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from harness import charts
from mqar.task import Task
from mqar.train import Result, Run

COLOURS = {
    "normalized_attn": charts.BLUE,
    "linear_attn": charts.VERMILION,
    "softmax": charts.GREY,
}
NAMES = {
    "normalized_attn": "normalised attention (dsfc)",
    "linear_attn": "linear attention (dsfc)",
    "softmax": "softmax attention (torch)",
}
LINES = ("-", "--", ":", "-.")
"""One line style per seed."""

CONVOLUTION_NOTE = (
    "The causal convolution of width 2 before each mixer is not in the paper. Without it"
    " normalised attention does not get beyond naming some value of the list in this many steps."
)


def caption(result: Result) -> str:
    """Names a result in a few words."""
    run = result.run
    bare = "" if run.convolution else ", no convolution"
    name = f"{run.mixer}, {run.task.pairs} pairs, n = {run.keys}, seed {run.seed}{bare}"
    return f"{name}: {result.accuracy:.2f}"


def show(results: Sequence[Result], seconds: float) -> None:
    """Prints one row per model, one accuracy per seed."""
    seeds = sorted({result.run.seed for result in results})
    table = Table(title="Multi-query associative recall: share of questions answered right")
    for name in ("task", "mixer", "n", "numbers in a state"):
        table.add_column(name)
    for seed in seeds:
        table.add_column(f"seed {seed}", justify="right")
    table.add_column("any of the list", justify="right")
    table.add_column("s per run", justify="right")
    previous = None
    for task, mixer, keys, convolution in _models(results):
        chosen = [
            r
            for r in results
            if (r.run.task, r.run.mixer, r.run.keys, r.run.convolution)
            == (task, mixer, keys, convolution)
        ]
        by_seed = {r.run.seed: f"{r.accuracy:.3f}" for r in chosen}
        if previous not in (None, task):
            table.add_section()
        previous = task
        table.add_row(
            _sizes(task),
            NAMES[mixer] + ("" if convolution else ", without convolution"),
            str(keys),
            _state(chosen[0].run),
            *(by_seed.get(seed, "") for seed in seeds),
            f"{task.chance:.3f}",
            f"{sum(r.seconds for r in chosen) / len(chosen):.0f}",
        )
    console = Console(width=120)
    console.print(table)
    console.print(CONVOLUTION_NOTE)
    console.print(f"{len(results)} runs in {seconds:.0f} s.")


def write(results: Sequence[Result], seconds: float, folder: Path) -> tuple[Path, ...]:
    """Draws accuracy by step, and by size of the state if there are several; returns the files."""
    drawn = (_draw_steps(results, folder / "steps.png"),)
    if len({r.run.keys for r in results}) == 1:
        return drawn
    return (*drawn, _draw_states(results, folder / "states.png"))


def _draw_steps(results: Sequence[Result], path: Path) -> Path:
    panels = sorted(
        {(r.run.task.length, r.run.task, r.run.keys) for r in results},
        key=lambda panel: (panel[0], panel[2]),
    )
    count = len(panels)
    figure, axes = charts.subplots(1, count, max(3.6 * count, 4.8), 3.6, sharey=True)
    axes = np.atleast_1d(axes)
    for axis, (_, task, keys) in zip(axes, panels, strict=True):
        for result in results:
            run = result.run
            if (run.task, run.keys) != (task, keys):
                continue
            name = NAMES[run.mixer] + ("" if run.convolution else ", without convolution")
            axis.plot(
                *zip(*result.curve, strict=True),
                color=COLOURS[run.mixer] if run.convolution else charts.PURPLE,
                linestyle=LINES[run.seed % len(LINES)],
                label=f"{name}, seed {run.seed}",
            )
        axis.axhline(task.chance, color=charts.LIGHT, linewidth=0.8)
        axis.set(
            title=f"{_sizes(task)}, n = {keys}", xlabel="steps of 64 sequences", ylim=(0, 1.02)
        )
    axes[0].set_ylabel("questions answered right")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=min(count, 4), fontsize="small"
    )
    return charts.save(figure, path)


def _draw_states(results: Sequence[Result], path: Path) -> Path:
    task = max((r.run.task for r in results), key=lambda task: task.length)
    figure, axis = charts.subplots(1, 1, 6, 4.8)
    for mixer in NAMES:
        chosen = [r for r in results if (r.run.task, r.run.mixer) == (task, mixer)]
        for seed in sorted({r.run.seed for r in chosen}):
            points = sorted(
                (r.run.keys * r.run.width, r.accuracy) for r in chosen if r.run.seed == seed
            )
            axis.plot(
                *zip(*points, strict=True),
                color=COLOURS[mixer],
                linestyle=LINES[seed % len(LINES)],
                marker="o",
                label=f"{NAMES[mixer]}, seed {seed}",
            )
    sizes = sorted({r.run.keys * r.run.width for r in results if r.run.task == task})
    axis.set_xscale("log", base=2)
    axis.set_xticks(sizes, [f"{size // 64} × 64" for size in sizes])
    axis.set(
        title=f"{_sizes(task)} (softmax keeps all keys and values instead)",
        xlabel="numbers in a state, n × 64",
        ylabel="questions answered right",
        ylim=(0, 1.02),
    )
    figure.legend(loc="outside lower center", ncols=2, fontsize="small")
    return charts.save(figure, path)


def _models(results: Sequence[Result]) -> list[tuple[Task, str, int, bool]]:
    """Returns what differs by more than the seed, smaller tasks and states first."""
    found = {(r.run.task, r.run.mixer, r.run.keys, r.run.convolution) for r in results}
    order = list(NAMES)
    return sorted(found, key=lambda m: (m[0].length, not m[3], m[2], order.index(m[1])))


def _sizes(task: Task) -> str:
    return f"{task.pairs} pairs in {task.length} tokens"


def _state(run: Run) -> str:
    if run.mixer == "softmax":
        return "grows with length"
    extra = run.keys if run.mixer == "linear_attn" else 0
    return f"{run.keys * run.width + extra:,}"
