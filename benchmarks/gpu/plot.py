"""Draws the speed part of a document: times over what the memory allows, against length."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure


def draw(document: Mapping[str, Any], file: Path) -> Path:
    """Draws a document beside its file and returns the picture.

    Args:
        document: the results.
        file: where they lie.
    """
    figure = Figure(figsize=(12, 5), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for axis, work in zip(panels, ("forward", "both"), strict=True):
        lines: dict[str, list[tuple[int, float]]] = {}
        for r in document["speed"]:
            if work not in r:
                continue
            name = f"{r.get('spec') or r['peer']}, {r['rows']} rows"
            floor = r[work].get("floor")
            if floor:
                lines.setdefault(name, []).append((r["length"], r[work]["graph"] / floor))
        for name, points in lines.items():
            axis.plot(*zip(*sorted(points), strict=True), "o-", label=name, markersize=4)
        axis.axhline(1, color="black", linewidth=0.8)
        axis.set(xscale="log", yscale="log", xlabel="length L", title=work)
        if lines:
            axis.legend(fontsize=6)
    panels[0].set_ylabel("time, of that of the bytes at the copy rate")
    name = document["device"]["name"]
    figure.suptitle(f"{name}, {document['date']}, Triton {document['versions']['triton']}")
    path = file.with_suffix(".png")
    figure.savefig(path, dpi=120)
    return path


def main() -> None:
    """Draws the files of the command line."""
    for name in sys.argv[1:]:
        print(draw(json.loads(Path(name).read_text(encoding="utf-8")), Path(name)))


if __name__ == "__main__":
    main()
