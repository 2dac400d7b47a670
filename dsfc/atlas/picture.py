"""An atlas as a picture: a column for each structure class, an arc for each proved statement.

Positions follow from the names alone, so a picture changes only where the atlas does.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch

from dsfc.atlas.ir import Atlas, Node
from dsfc.atlas.report import statement

BLUE, VERMILION, GREY, LIGHT = "#0072b2", "#d55e00", "#555555", "#bbbbbb"
"""Of Okabe and Ito's palette: always equal, equal under conditions, mixers without an edge."""

ROW, COLUMN = 0.34, 2.5
"""Inches between two names, and between two columns."""

Place = tuple[float, float]


def draw(atlas: Atlas, file: Path) -> None:
    """Writes the picture of an atlas; the suffix says the format.

    Args:
        atlas: what was found.
        file: a path that ends in .png, .svg or .pdf.
    """
    matplotlib.use("Agg")
    places = _places(atlas)
    rows = max((round(-y) for _, y in places.values()), default=0) + 1
    columns = max((round(x) for x, _ in places.values()), default=0) + 1
    edges = atlas.edges
    height = 1.0 + ROW * (rows + 1) + 0.24 * (len(edges) + 2)
    figure = Figure(figsize=(max(COLUMN * columns + 0.6, 7.5), height), layout="none")
    axis = figure.add_axes((0, 0, 1, 1))
    axis.set_axis_off()
    axis.set_xlim(-0.15, columns + 0.02)
    top = 1.0 / ROW
    axis.set_ylim(-(height / ROW) + top, top)
    _titles(axis, atlas, places)
    for number, p in enumerate(edges, 1):
        colour = VERMILION if p.conditions else BLUE
        _arc(axis, places[p.a], places[p.b], colour, p.directed, str(number))
    _names(axis, atlas, places)
    _legend(axis, atlas, rows)
    figure.savefig(file, dpi=140, facecolor="white")


def _kinds(atlas: Atlas) -> dict[str, list[Node]]:
    """Mixers by class, in the order of their names."""
    kinds: dict[str, list[Node]] = {}
    for node in sorted(atlas.nodes, key=lambda n: n.name):
        kinds.setdefault(node.kind, []).append(node)
    return dict(sorted(kinds.items(), key=lambda item: (-len(item[1]), item[0])))


def _places(atlas: Atlas) -> dict[str, Place]:
    """(column, −row) of each mixer; classes of few members share a column."""
    kinds = _kinds(atlas)
    deepest = max((len(nodes) for nodes in kinds.values()), default=0)
    out: dict[str, Place] = {}
    column, row = 0, 0
    for nodes in kinds.values():
        if row and row + len(nodes) + 2 > deepest:
            column, row = column + 1, 0
        start = row + 2 if row else 0
        for k, node in enumerate(nodes):
            out[node.name] = (float(column), -float(start + k))
        row = start + len(nodes)
    return out


def _titles(axis: Axes, atlas: Atlas, places: dict[str, Place]) -> None:
    count = len(atlas.edges)
    said = f"{count} proved statement" + "s" * (count != 1)
    title = f"{len(atlas.nodes)} sequence mixers by structure class, {said}"
    axis.text(-0.1, 0.72 / ROW, title, fontsize=12, fontweight="bold", va="center")
    for kind, nodes in _kinds(atlas).items():
        x, y = places[nodes[0].name]
        axis.text(x - 0.04, y + 0.95, kind, fontsize=9, color=GREY, style="italic", va="center")


def _names(axis: Axes, atlas: Atlas, places: dict[str, Place]) -> None:
    related = {name for p in atlas.edges for name in (p.a, p.b)}
    for node in atlas.nodes:
        x, y = places[node.name]
        colour = "black" if node.name in related else GREY
        axis.plot([x], [y], "o", markersize=4, color=colour, zorder=3)
        axis.text(
            x + 0.04, y, node.name, fontsize=9, color=colour, va="center", zorder=4,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8, "alpha": 0.85},
        )  # fmt: skip


def _arc(axis: Axes, a: Place, b: Place, colour: str, directed: bool, label: str) -> None:
    bend = 0.35 if a[0] == b[0] else 0.12
    if a[0] == b[0] and a[1] > b[1]:
        bend = -bend  # arcs of one column keep to its left, clear of the names
    axis.add_patch(
        FancyArrowPatch(
            a, b, connectionstyle=f"arc3,rad={-bend}", color=colour, linewidth=1.4,
            arrowstyle="-|>" if directed else "-", mutation_scale=10, shrinkA=3, shrinkB=3, zorder=2,
        )
    )  # fmt: skip
    # The middle of the quadratic curve that `arc3` draws, in display units turned back to data.
    here, there = axis.transData.transform([a, b])
    dx, dy = there - here
    middle = (here + there) / 2 + 0.5 * -bend * (there - here)[::-1] * (1, -1)
    x, y = axis.transData.inverted().transform(middle)
    assert dx or dy
    axis.text(
        x, y, label, fontsize=8, color=colour, ha="center", va="center", zorder=5,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6},
    )  # fmt: skip


def _legend(axis: Axes, atlas: Atlas, rows: int) -> None:
    y = -float(rows) - 0.5
    step = 0.24 / ROW
    for number, p in enumerate(atlas.edges, 1):
        colour = VERMILION if p.conditions else BLUE
        axis.text(-0.1, y, f"{number}", fontsize=8, color=colour, va="center", ha="left")
        axis.text(0.0, y, statement(p), fontsize=8, va="center")
        y -= step
    said = (
        "blue: always equal; vermilion: equal under the conditions named; no line: nothing proved"
    )
    axis.text(-0.1, y - 0.3 * step, said, fontsize=8, color=GREY, va="center")
