"""Draws the speed part of a document: times over what the memory allows, against length."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from pathlib import Path
from typing import Any

from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

WORKS = {"forward": "forward", "both": "forward and backward"}
_COLUMNS = 5


def draw(document: Mapping[str, Any], file: Path) -> tuple[Path, ...]:
    """Draws a document beside its file and returns the pictures, one for each work.

    Args:
        document: the results.
        file: where they lie, `<name>.json`; pictures are `<name>-forward.png`, `<name>-both.png`.
    """
    made = []
    for work, title in WORKS.items():
        figure = panels(document["speed"], work)
        device, versions = document["device"]["name"], document["versions"]
        figure.suptitle(f"{device}, {document['date']}, Triton {versions['triton']}: {title}")
        made.append(file.with_name(f"{file.stem}-{work}.png"))
        figure.savefig(made[-1], dpi=120)
    return tuple(made)


def panels(records: Sequence[Mapping[str, Any]], work: str) -> Figure:
    """A panel for each mixer, and in it a line for each number of rows; dashed the peer's time.

    Args:
        records: the speed part of a document.
        work: `forward` or `both`.
    """
    ours = [r for r in records if work in r and "spec" in r]
    names = sorted({r["spec"] for r in ours})
    rows = sorted({r["rows"] for r in ours})
    lines = max(ceil(len(names) / _COLUMNS), 1)
    figure = Figure(figsize=(13, 2.3 * lines + 1.6), layout="constrained")
    axes = figure.subplots(lines, _COLUMNS, sharex=True, sharey=True, squeeze=False).flatten()
    colours = dict(zip(rows, colormaps["viridis"](_spread(len(rows))), strict=True))
    for axis, name in zip(axes, names, strict=False):
        _panel(axis, name, [r for r in ours if r["spec"] == name], records, work, colours)
    for axis in axes[len(names) :]:
        axis.set_axis_off()
    for axis in axes[max(len(names) - _COLUMNS, 0) : len(names)]:  # the last of each column
        axis.set_xlabel("length L", fontsize=8)
        axis.tick_params(labelbottom=True)
    keys = [Line2D([], [], color=colours[n], marker="o", label=f"B·H = {n}") for n in rows]
    keys.append(
        Line2D([], [], color="black", linestyle="--", label="flash-linear-attention, same mixer")
    )
    keys.append(Line2D([], [], color="black", linewidth=0.8, label="the bytes at the copy rate"))
    figure.legend(handles=keys, loc="outside lower center", ncols=min(len(keys), 9), fontsize=8)
    figure.supylabel("time, of that of the bytes at the copy rate", fontsize=9)
    return figure


def _panel(
    axis: Axes,
    name: str,
    ours: Sequence[Mapping[str, Any]],
    records: Sequence[Mapping[str, Any]],
    work: str,
    colours: Mapping[int, Any],
) -> None:
    peers = {
        r["shape"]: r[work]["best"]
        for r in records
        if "peer" in r and work in r and r["beside"] == name
    }
    for rows, colour in colours.items():
        found = [r for r in ours if r["rows"] == rows]
        points = sorted((r["length"], r[work]["times the floor"]) for r in found)
        axis.plot(*_columns(points), "o-", color=colour, markersize=3)
        theirs = sorted(
            (r["length"], peers[r["shape"]] / r[work]["floor"])
            for r in found
            if r["shape"] in peers
        )
        axis.plot(*_columns(theirs), "x--", color=colour, markersize=4)
    axis.axhline(1, color="black", linewidth=0.8)
    axis.set(xscale="log", yscale="log")
    axis.set_title(name, fontsize=9)
    axis.tick_params(labelsize=7, which="both")


def _columns(points: Sequence[tuple[int, float]]) -> Iterator[list[float]]:
    yield [x for x, _ in points]
    yield [y for _, y in points]


def _spread(count: int) -> list[float]:
    """Places on a map of colours, without its palest end."""
    return [0.85 * k / max(count - 1, 1) for k in range(count)]


def main() -> None:
    """Draws the files of the command line."""
    for name in sys.argv[1:]:
        for path in draw(json.loads(Path(name).read_text(encoding="utf-8")), Path(name)):
            print(path)


if __name__ == "__main__":
    main()
