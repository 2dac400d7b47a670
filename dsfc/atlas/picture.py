"""An atlas as a picture: a column for each structure class, an arc for each proved statement.

Positions follow from the names alone, so a picture changes only where the atlas does.
"""

from __future__ import annotations

import textwrap
from typing import Any, BinaryIO

import matplotlib
import networkx
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch
from matplotlib.path import Path as Curve

from dsfc.atlas.ir import Atlas, Node, Pair
from dsfc.atlas.report import statement

BLUE, VERMILION, GREEN, GREY = "#0072b2", "#d55e00", "#009e73", "#555555"
"""Of Okabe and Ito's palette: always equal, equal under conditions, a case, no edge."""

ROW, COLUMN = 0.3, 2.35
"""Inches between two names, and between two columns."""

LEFT = -0.4
"""Where titles start, in columns."""

NEAREST, WIDEST, NAME = 0.09, 0.36, 0.037
"""How far arcs reach left of their column, and the width of a letter of a name, in columns."""

LINE = 0.2
"""Inches between two lines of the list of statements."""

LETTERS = 14
"""Of that list, on one inch."""

Place = tuple[float, float]


def draw(atlas: Atlas, file: BinaryIO, form: str) -> None:
    """Writes the picture of an atlas.

    Args:
        atlas: what was found.
        file: where to.
        form: png, svg or pdf.
    """
    matplotlib.use("Agg")
    places = _places(atlas)
    rows = max((round(-y) for _, y in places.values()), default=0) + 1
    columns = max((round(x) for x, _ in places.values()), default=0) + 1
    width = max(COLUMN * columns + 1.0, 7.5)
    said = _said(atlas, width)
    height = 1.0 + ROW * (rows + 1) + LINE * (sum(map(len, said)) + 2)
    figure = Figure(figsize=(width, height))
    axis = figure.add_axes((0, 0, 1, 1))
    axis.set_axis_off()
    axis.set_xlim(LEFT - 0.05, width / COLUMN + LEFT - 0.05)
    top = 1.0 / ROW
    axis.set_ylim(-(height / ROW) + top, top)
    _titles(axis, atlas, places)
    _arcs(axis, atlas, places)
    _names(axis, atlas, places)
    _legend(axis, atlas, said, rows)
    figure.savefig(file, format=form, dpi=140, facecolor="white")


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
    """A lane for each edge: edges of one column that pass one row have different ones.

    Edges between columns have their numbers at different places: the lane says which.
    """
    taken: list[tuple[float, float, float, int]] = []
    lanes = [0] * len(atlas.edges)
    spans = [tuple(sorted((places[p.a][1], places[p.b][1]))) for p in atlas.edges]
    crossing = 0
    for k in sorted(range(len(spans)), key=lambda k: (spans[k][1] - spans[k][0], k)):
        low, high = spans[k]
        column = places[atlas.edges[k].a][0]
        if column != places[atlas.edges[k].b][0]:
            lanes[k], crossing = crossing, crossing + 1
            continue
        used = {lane for c, lo, hi, lane in taken if c == column and lo <= high and low <= hi}
        lanes[k] = next(n for n in range(len(spans) + 1) if n not in used)
        taken.append((column, low, high, lanes[k]))
    return lanes


def _arcs(axis: Axes, atlas: Atlas, places: dict[str, Place]) -> None:
    """The edges, with their numbers: left of a column, or from one column to another."""
    lanes = _lanes(atlas, places)
    inside = [
        n for p, n in zip(atlas.edges, lanes, strict=True) if places[p.a][0] == places[p.b][0]
    ]
    step = min(0.085, (WIDEST - NEAREST) / max(inside, default=1)) if any(inside) else 0.0
    for number, (p, lane) in enumerate(zip(atlas.edges, lanes, strict=True), 1):
        a, b = places[p.a], places[p.b]
        if a[0] == b[0]:
            left = a[0] - 4 * (NEAREST + step * lane) / 3  # the curve reaches three quarters of it
            corners = [a, (left, a[1]), (left, b[1]), b]
            at = 0.5
        else:
            # A line leaves the left one of the two after its name, and ends before the other's.
            after = 0.06 + NAME * len(p.a if a[0] < b[0] else p.b)
            start = (a[0] + after * (a[0] < b[0]), a[1])
            end = (b[0] + after * (b[0] < a[0]), b[1])
            bend = 0.45 * (end[0] - start[0])
            corners = [start, (start[0] + bend, start[1]), (end[0] - bend, end[1]), end]
            at = 0.25 + 0.1 * (lane % 6)
        _arc(axis, corners, at, _colour(p), p.directed, str(number))


def _arc(
    axis: Axes, corners: list[Place], at: float, colour: str, directed: bool, label: str
) -> None:
    """One edge as a Bézier curve, with its number at a part of its way."""
    curve = Curve(corners, [Curve.MOVETO, Curve.CURVE4, Curve.CURVE4, Curve.CURVE4])
    arrow = FancyArrowPatch(
        path=curve,
        color=colour,
        linewidth=1.4,
        fill=False,
        arrowstyle="-|>" if directed else "-",
        mutation_scale=11,
        zorder=2,
    )
    axis.add_patch(arrow)
    weights = ((1 - at) ** 3, 3 * at * (1 - at) ** 2, 3 * at**2 * (1 - at), at**3)
    x, y = (sum(w * c[k] for w, c in zip(weights, corners, strict=True)) for k in (0, 1))
    box: dict[str, Any] = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
    style: dict[str, Any] = {"fontsize": 8, "color": colour, "ha": "center", "va": "center"}
    axis.text(x, y, label, zorder=5, bbox=box, **style)


def _colour(p: Pair) -> str:
    if p.directed:
        return GREEN
    return VERMILION if p.conditions else BLUE


def _said(atlas: Atlas, width: float) -> list[list[str]]:
    """The lines of each statement, which fit the width; what goes on is moved in."""
    letters = round(LETTERS * width)
    return [
        textwrap.wrap(statement(p), letters, subsequent_indent="      ", break_long_words=False)
        for p in atlas.edges
    ]


def _legend(axis: Axes, atlas: Atlas, said: list[list[str]], rows: int) -> None:
    y = -float(rows) - 0.5
    step = LINE / ROW
    for number, (p, lines) in enumerate(zip(atlas.edges, said, strict=True), 1):
        axis.text(LEFT, y, f"{number}", fontsize=8, color=_colour(p), va="center", ha="left")
        for line in lines:
            indent = 0.08 + 0.012 * (len(line) - len(line.lstrip()))
            axis.text(LEFT + indent, y, line.lstrip(), fontsize=8, va="center")
            y -= step
    for x, colour, text in (
        (0.0, BLUE, "always equal"),
        (0.4, VERMILION, "equal where conditions hold"),
        (1.15, GREEN, "→ a case of what it points to"),
        (1.95, GREY, "no line: nothing proved"),
    ):
        axis.text(LEFT + x, y - 0.4 * step, text, fontsize=8, color=colour, va="center")
