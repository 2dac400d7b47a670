"""An atlas as a picture: a column for each structure class, an arc for each proved statement.

Positions follow from the names alone, so a picture changes only where the atlas does.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
import networkx
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch
from matplotlib.path import Path as Curve

from dsfc.atlas.ir import Atlas, Node
from dsfc.atlas.report import statement

BLUE, VERMILION, GREY, LIGHT = "#0072b2", "#d55e00", "#555555", "#bbbbbb"
"""Of Okabe and Ito's palette: always equal, equal under conditions, mixers without an edge."""

ROW, COLUMN = 0.3, 2.35
"""Inches between two names, and between two columns."""

LEFT = -0.25
"""Where titles start, in columns."""

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
    figure = Figure(figsize=(max(COLUMN * columns + 0.6, 7.5), height))
    axis = figure.add_axes((0, 0, 1, 1))
    axis.set_axis_off()
    axis.set_xlim(-0.3, columns - 0.1)
    top = 1.0 / ROW
    axis.set_ylim(-(height / ROW) + top, top)
    _titles(axis, atlas, places)
    for number, (p, lane) in enumerate(zip(edges, _lanes(atlas, places), strict=True), 1):
        colour = VERMILION if p.conditions else BLUE
        _arc(axis, places[p.a], places[p.b], lane, colour, p.directed, str(number))
    _names(axis, atlas, places)
    _legend(axis, atlas, rows)
    figure.savefig(file, dpi=140, facecolor="white")


def _kinds(atlas: Atlas) -> dict[str, list[Node]]:
    """Mixers by class; those that proofs connect stand together, else by name."""
    first = {
        name: min(family)
        for family in networkx.weakly_connected_components(atlas.graph())
        for name in family
    }
    kinds: dict[str, list[Node]] = {}
    for node in sorted(atlas.nodes, key=lambda n: (first[n.name], n.name)):
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
    axis.text(LEFT, 0.72 / ROW, title, fontsize=12, fontweight="bold", va="center")
    for kind, nodes in _kinds(atlas).items():
        x, y = places[nodes[0].name]
        axis.text(x - 0.04, y + 0.95, kind, fontsize=9, color=GREY, style="italic", va="center")


def _names(axis: Axes, atlas: Atlas, places: dict[str, Place]) -> None:
    related = {name for p in atlas.edges for name in (p.a, p.b)}
    for node in atlas.nodes:
        x, y = places[node.name]
        colour = "black" if node.name in related else GREY
        axis.plot([x], [y], "o", markersize=4, color=colour, zorder=3)
        box: dict[str, Any] = {"facecolor": "white", "edgecolor": "none", "pad": 0.8, "alpha": 0.85}
        style: dict[str, Any] = {"fontsize": 9, "color": colour, "va": "center"}
        axis.text(x + 0.04, y, node.name, zorder=4, bbox=box, **style)


def _lanes(atlas: Atlas, places: dict[str, Place]) -> list[int]:
    """A lane for each edge: edges of one column that pass one row have different ones."""
    taken: list[tuple[float, float, float, int]] = []
    lanes = [0] * len(atlas.edges)
    spans = [tuple(sorted((places[p.a][1], places[p.b][1]))) for p in atlas.edges]
    for k in sorted(range(len(spans)), key=lambda k: (spans[k][1] - spans[k][0], k)):
        low, high = spans[k]
        column = places[atlas.edges[k].a][0]
        used = {lane for c, lo, hi, lane in taken if c == column and lo <= high and low <= hi}
        lanes[k] = next(n for n in range(len(spans) + 1) if n not in used)
        taken.append((column, low, high, lanes[k]))
    return lanes


def _arc(
    axis: Axes, a: Place, b: Place, lane: int, colour: str, directed: bool, label: str
) -> None:
    """One edge, left of its column where both ends stand in one, with its number."""
    bulge = 0.09 + 0.085 * lane
    if a[0] == b[0]:
        left = a[0] - 4 * bulge / 3  # the curve reaches three quarters of the way
        corners = [a, (left, a[1]), (left, b[1]), b]
        x, y = a[0] - bulge, (a[1] + b[1]) / 2
    else:
        half = (a[0] + b[0]) / 2
        corners = [a, (half, a[1] - 0.5 - lane), (half, b[1] - 0.5 - lane), b]
        x, y = half, (a[1] + b[1]) / 2 - 0.75 * (0.5 + lane)
    curve = Curve(corners, [Curve.MOVETO, Curve.CURVE4, Curve.CURVE4, Curve.CURVE4])
    arrow = FancyArrowPatch(
        path=curve,
        color=colour,
        linewidth=1.4,
        fill=False,
        arrowstyle="->" if directed else "-",
        mutation_scale=9,
        zorder=2,
    )
    axis.add_patch(arrow)
    box: dict[str, Any] = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
    style: dict[str, Any] = {"fontsize": 8, "color": colour, "ha": "center", "va": "center"}
    axis.text(x, y, label, zorder=5, bbox=box, **style)


def _legend(axis: Axes, atlas: Atlas, rows: int) -> None:
    y = -float(rows) - 0.5
    step = 0.24 / ROW
    for number, p in enumerate(atlas.edges, 1):
        colour = VERMILION if p.conditions else BLUE
        axis.text(LEFT, y, f"{number}", fontsize=8, color=colour, va="center", ha="left")
        axis.text(LEFT + 0.08, y, statement(p), fontsize=8, va="center")
        y -= step
    said = (
        "blue: always equal; vermilion: equal under the conditions named; no line: nothing proved"
    )
    axis.text(LEFT, y - 0.3 * step, said, fontsize=8, color=GREY, va="center")
