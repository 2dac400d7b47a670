"""Draws a file of results: python -m benchmarks.plots benchmarks/results/<file>.json."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks import record
from benchmarks.contender import OURS, Work
from benchmarks.record import Document, RowRecord
from benchmarks.table import Law, Quantity
from benchmarks.tables import beside_peers
from benchmarks.verdict import summary, units

_OURS, _PEER, _PALE = "#0072b2", "#d55e00", "#999999"
_COLOURS = {"scalar": "#0072b2", "elementwise": "#d55e00", "selective": "#009e73",
            "per_key": "#cc79a7", "lti": "#e69f00"}  # fmt: skip
_FAR = 30.0


def draw(document: Document, file: Path) -> tuple[Path, ...]:
    """Draws what a document holds beside its file; returns the pictures.

    Args:
        document: the results.
        file: where they lie, `<name>.json`; pictures are `<name>-peers.png`, `<name>-growth.png`
            and `<name>-c.png`.
    """
    rows = [row for row in document["rows"] if "skipped" not in row]
    grown = [row for row in rows if "growth_seconds" in row]
    made = []
    if rows:
        made.append(_save(_peers(rows), file, "peers"))
    if grown:
        made.append(_save(_growth(grown), file, "growth"))
    if in_c := list(beside_peers(document)):
        made.append(_save(_in_c(in_c), file, "c"))
    return tuple(made)


def _save(figure: Figure, file: Path, what: str) -> Path:
    path = file.with_name(f"{file.stem}-{what}.png")
    figure.savefig(path, dpi=120)
    return path


def _peers(rows: Sequence[RowRecord]) -> Figure:
    """One line of panels per row: time forward, time forward and backward, memory.

    A mark on our bar is what it is to stay below. A panel whose bars differ too much in length is
    logarithmic.
    """
    heights = [0.8 + 0.42 * len(row["seconds"]) for row in rows]
    figure = Figure(figsize=(12, sum(heights) + 0.5), layout="constrained")
    panels = figure.subplots(len(rows), 3, squeeze=False, height_ratios=heights)
    for row, axes in zip(rows, panels, strict=True):
        names = list(row["seconds"])[::-1]
        for axis, work in zip(axes, Work, strict=False):
            _bars_of_time(axis, row, names, work)
        _bars_of_memory(axes[2], row, names)
        sizes = " ".join(f"{name}{size}" for name, size in row["sizes"].items())
        axes[0].set_title(f"{row['name']}: {row['spec']}.dsf, {sizes}", loc="left", fontsize=9)
        for axis in axes[1:]:
            axis.set_yticklabels([])
    for axis, label in zip(panels[-1], ("forward, ms", "forward and backward, ms",
                                        "forward and backward, peak MB"), strict=True):  # fmt: skip
        axis.set_xlabel(label)
    return figure


def _bars_of_time(axis: Axes, row: RowRecord, names: Sequence[str], work: Work) -> None:
    found = [summary(row["seconds"][name][work.value]) for name in names]
    _bars(axis, names, [(1e3 * s.low, 1e3 * s.median, 1e3 * s.high) for s in found])
    _targets(axis, row, Quantity.TIME, work, 1e3)


def _bars_of_memory(axis: Axes, row: RowRecord, names: Sequence[str]) -> None:
    work = Work.TRAINING
    peaks = [row["memory"].get(name, {}).get(work.value) for name in names]
    if not any(peaks):  # of one token no memory is measured
        axis.set_axis_off()
        return
    sizes = [[size / 1e6 for size in peak["peaks"]] if peak else [0.0] for peak in peaks]
    _bars(axis, names, [(min(each), median(each), max(each)) for each in sizes])
    unavoidable = next((peak["unavoidable"] / 1e6 for peak in peaks[::-1] if peak), 0.0)
    axis.axvline(unavoidable, color="black", linewidth=0.8, linestyle=":")
    _targets(axis, row, Quantity.MEMORY, work, 1e-6)


def _bars(axis: Axes, names: Sequence[str], values: Sequence[tuple[float, float, float]]) -> None:
    """Draws low, middle and high of each name, and writes the middle behind its bar."""
    middles = [middle for _, middle, _ in values]
    around = (
        [middle - low for low, middle, _ in values],
        [high - middle for _, middle, high in values],
    )
    axis.barh(names, middles, xerr=around, color=[_colour(name) for name in names], height=0.7)
    for name, (_, middle, high) in zip(names, values, strict=True):
        if middle:
            text = f" {middle:.3g}" if middle < 1000 else f" {middle:.0f}"
            axis.annotate(text, (high, name), va="center", fontsize=8)
    least, most = min(m for m in middles if m), max(high for _, _, high in values)
    if most > _FAR * least:  # a bar many times as long would leave nothing of the others
        axis.set(xscale="log", xlim=(least / 5, 4 * most))
    else:
        axis.set_xlim(0, 1.25 * most)
    axis.tick_params(labelsize=8)


def _targets(axis: Axes, row: RowRecord, quantity: Quantity, work: Work, unit: float) -> None:
    """Marks on our bar what it is to stay below."""
    for verdict in row["verdicts"]:
        target = verdict["target"]
        if target and (verdict["quantity"], verdict["work"]) == (quantity.value, work.value):
            axis.plot(target * unit, OURS, "|", color=_PEER, markersize=22, markeredgewidth=2)


def _in_c(rows: Sequence[tuple[RowRecord, str]]) -> Figure:
    """How many times as fast kernels in C are as their first peer, on a logarithmic scale."""
    labels = [f"{row['spec']}\nbeside {peer}" for row, peer in rows]
    figure = Figure(figsize=(10, 0.62 * len(rows) + 1), layout="constrained")
    axis = figure.subplots()
    places = [float(k) for k in range(len(rows))][::-1]
    for shift, colour, work in zip((0.18, -0.18), (_OURS, _PEER), Work, strict=True):
        ratios = [
            median(row["seconds"][peer][work.value]) / median(row["seconds"][OURS][work.value])
            for row, peer in rows
        ]
        at = [place + shift for place in places]
        bars = axis.barh(at, ratios, 0.34, color=colour, label=work.value)
        axis.bar_label(bars, [f"{ratio:.1f}" for ratio in ratios], padding=3, fontsize=8)
    axis.axvline(1, color="black", linewidth=0.8, linestyle="--")
    axis.set_yticks(places, labels, fontsize=8)
    axis.set(xscale="log", xlabel="times as fast")
    axis.set_xlim(0.9, 2 * axis.get_xlim()[1])
    axis.xaxis.set_major_formatter("{x:g}")
    axis.legend(loc="lower right", frameon=False)
    axis.spines[["top", "right"]].set_visible(False)
    return figure


def _colour(name: str) -> str:
    return _OURS if name == OURS else _PALE


def _growth(rows: Sequence[RowRecord]) -> Figure:
    """Time and memory per token against length, as multiples of those of the shortest."""
    figure = Figure(figsize=(12, 7.2), layout="constrained")
    (time, memory), (time_share, memory_share) = figure.subplots(2, 2, sharex=True)
    for row in rows:
        colour = _COLOURS.get(row["name"], _PEER)
        by_length = row["growth_seconds"][Work.TRAINING.value]
        lengths = [int(n) for n in by_length]
        seconds = [median(by_length[str(n)]) for n in lengths]
        law = Law(row["growth_law"])
        costs = [s / units(n, law) for s, n in zip(seconds, lengths, strict=True)]
        peaks = [row["growth_memory"][str(n)]["peak"] for n in lengths]
        label = row["name"] if law is Law.LINEAR else f"{row['name']}, of {law.value}"
        time.plot(lengths, seconds, "o-", color=colour, label=row["name"], markersize=4)
        memory.plot(lengths, [p / 1e6 for p in peaks], "o-", color=colour, markersize=4)
        least = [row["growth_memory"][str(n)]["unavoidable"] / 1e6 for n in lengths]
        memory.plot(lengths, least, ":", color=colour, linewidth=1)
        time_share.plot(lengths, [c / costs[0] for c in costs], "o-", color=colour, markersize=4,
                        label=label)  # fmt: skip
        per_token = [p / n for p, n in zip(peaks, lengths, strict=True)]
        memory_share.plot(lengths, [p / per_token[0] for p in per_token], "o-", color=colour,
                          markersize=4)  # fmt: skip
    for axis in (time, memory):
        axis.set(xscale="log", yscale="log")
    for axis, bound in ((time_share, 1.3), (memory_share, 1.1)):
        axis.axhline(bound, color="black", linewidth=0.8, linestyle="--")
        axis.set(ylim=(0, None), xlabel="length L")
        axis.set_xscale("log", base=2)
    time.set(ylabel="seconds", title="forward and backward")
    memory.set(ylabel="peak MB", title="memory (dotted: arguments, output, gradients)")
    time_share.set(ylabel="time per token, of that at the shortest")
    memory_share.set(ylabel="memory per token, of that at the shortest")
    time.legend(fontsize=8)
    time_share.legend(fontsize=8)
    return figure


def main() -> None:
    """Draws the files of the command line."""
    for name in sys.argv[1:]:
        document = record.read(Path(name))
        if document is None:
            raise SystemExit(f"no such file: {name}")
        for path in draw(document, Path(name)):
            print(f"wrote {path}")


if __name__ == "__main__":
    main()
