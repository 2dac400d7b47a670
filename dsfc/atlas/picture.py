"""An atlas as a picture: boxes in bands of one structure class, arrows from general to special."""

from __future__ import annotations

import re
from io import StringIO
from typing import Any, BinaryIO

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle
from matplotlib.path import Path as Curve
from matplotlib.textpath import TextPath

from dsfc.atlas.ir import Atlas
from dsfc.atlas.layout import Arrow, Layout, layout
from dsfc.atlas.report import statement

INK, GREY, PAPER, BAND = "#1c1c1d", "#6d6d6e", "#fefefd", "#f0f1f4"
CASE, CONDITION = "#00785a", "#c24e00"

DARK = {
    INK: "#ececed",
    GREY: "#9a9a9b",
    PAPER: "#141517",
    BAND: "#202226",
    CASE: "#3fc79d",
    CONDITION: "#ff9a57",
}
"""The colours of a reader who prefers a dark page; only SVG knows of one."""

ROW, GAP, TITLE = 0.36, 0.55, 1.75
"""Inches: between two rows, between two columns, and for the names of classes on the left."""

BOX, PAD, TEXT, SMALL = 0.22, 0.07, 8.5, 7.5
"""Height of a box and room beside its text in inches, and sizes of letters in points."""

HEAD, LINE, BADGE, LETTERS = 0.62, 0.165, 0.082, 165
"""Inches: above the bands, between lines of the list, radius of a number; letters of a line."""

TRIED = tuple(0.5 + sign * k * 0.04 for k in range(11) for sign in (1, -1))
"""Parts of an arrow's way at which its number may stand, the middle first."""

Place = tuple[float, float]


def draw(atlas: Atlas, file: BinaryIO, form: str) -> None:
    """Writes the picture of an atlas; equal atlases give equal pictures.

    Args:
        atlas: what was found.
        file: where to.
        form: png, svg or pdf.
    """
    with matplotlib.rc_context({"svg.hashsalt": "dsfc", "backend": "Agg"}):
        drawn = figure(atlas)
        if form != "svg":
            kept: dict[str, Any] = {"metadata": {"CreationDate": None}} if form == "pdf" else {}
            drawn.savefig(file, format=form, dpi=150, facecolor=PAPER, **kept)
            return
        text = StringIO()
        drawn.savefig(text, format="svg", facecolor=PAPER, metadata={"Date": None})
        file.write(_both_ways(text.getvalue()).encode())


def _both_ways(svg: str) -> str:
    """A picture whose colours follow what its reader prefers; others see the light ones."""
    light = "".join(f"--c{k}:{colour};" for k, colour in enumerate(DARK))
    dark = "".join(f"--c{k}:{colour};" for k, colour in enumerate(DARK.values()))
    style = f"svg{{{light}}}@media (prefers-color-scheme:dark){{svg{{{dark}}}}}"
    for k, colour in enumerate(DARK):
        svg = re.sub(rf"(fill|stroke): {colour}", rf"\1: {colour}; \1: var(--c{k})", svg)
    return svg.replace("</style>", f"{style}</style>", 1)


class _Canvas:
    """A figure in inches, y downward, and the rectangles that are taken."""

    def __init__(self, axis: Axes) -> None:
        self.axis = axis
        self._taken: list[tuple[float, float, float, float]] = []

    def text(self, at: Place, words: str, colour: str, size: float, **style: str) -> None:
        placed = self.axis.text(*at, words, parse_math=False, zorder=6)
        placed.set(color=colour, fontsize=size, va="center_baseline", **style)

    def take(self, left: float, top: float, right: float, bottom: float) -> None:
        self._taken.append((left, top, right, bottom))

    def free(self, at: Place, room: float) -> bool:
        """Whether nothing stands within some inches of a place."""
        x, y = at
        return not any(
            a - room < x < c + room and b - room < y < d + room for a, b, c, d in self._taken
        )


def figure(atlas: Atlas) -> Figure:
    """Returns the picture as matplotlib has it."""
    at = layout(atlas)
    wide = [0.0] * at.columns
    for box, (column, _) in at.boxes.items():
        wide[column] = max(wide[column], _width(box) + 2 * PAD)
    lefts = [TITLE + sum(wide[:c]) + GAP * c for c in range(at.columns)]
    rows = sum(height for _, _, height in at.bands)
    bottom = HEAD + ROW * rows + 0.12 * len(at.bands)
    said = [_said(a) for a in at.arrows]
    width = max(lefts[-1] + wide[-1] + 0.3, 9.5)
    height = bottom + 0.42 + LINE * (len(said) + 1)
    drawn = Figure(figsize=(width, height))
    axis = drawn.add_axes((0, 0, 1, 1))
    axis.set_axis_off()
    axis.set_xlim(0, width)
    axis.set_ylim(height, 0)
    canvas = _Canvas(axis)
    _heads(canvas, atlas, at, width)
    _boxes(canvas, at, lefts)
    _arrows(canvas, at, lefts)
    _list(canvas, at, said, bottom + 0.3)
    return drawn


def _width(words: str) -> float:
    """How wide a text of a box is, in inches."""
    return float(TextPath((0, 0), words, size=TEXT).get_extents().width) / 72


def _y(at: Layout, row: int) -> float:
    """Where the middle of a row is, in inches."""
    bands = sum(first <= row for _, first, _ in at.bands)
    return HEAD + ROW * (row + 0.5) + 0.12 * (bands - 1)


def _heads(canvas: _Canvas, atlas: Atlas, at: Layout, width: float) -> None:
    """The title, and a band with its name for each class."""
    title = f"{len(atlas.nodes)} sequence mixers by structure class: general → special"
    canvas.text((0.15, 0.2), title, INK, 11, fontweight="bold")
    x = 0.15
    for colour, dash, words in (
        (CASE, "-", "what the arrow points to is a case"),
        (CONDITION, (0, (4, 2)), "equal where a condition holds"),
        (INK, "", "a = b: equal for all sizes"),
        (GREY, "", "grey: no proof of a relation"),
    ):
        if dash:
            canvas.axis.plot([x, x + 0.3], [0.42, 0.42], color=colour, linestyle=dash, lw=1.3)
            x += 0.38
        canvas.text((x, 0.42), words, colour, SMALL)
        x += _width(words) * SMALL / TEXT + 0.25
    for kind, first, height in at.bands:
        top, low = _y(at, first) - ROW / 2, _y(at, first + height - 1) + ROW / 2
        band = Rectangle((0.1, top), width - 0.2, low - top, facecolor=BAND, edgecolor="none",
                         zorder=0)  # fmt: skip
        canvas.axis.add_patch(band)
        canvas.text((0.2, _y(at, first)), kind, GREY, TEXT, fontstyle="italic")
        canvas.take(0.2, top, TITLE - 0.2, low)


def _boxes(canvas: _Canvas, at: Layout, lefts: list[float]) -> None:
    for box, (column, row) in at.boxes.items():
        colour = INK if box in at.related else GREY
        x, y, wide = lefts[column], _y(at, row), _width(box) + 2 * PAD
        canvas.axis.add_patch(
            FancyBboxPatch((x, y - BOX / 2), wide, BOX, boxstyle="round,pad=0,rounding_size=0.05",
                           facecolor=PAPER, edgecolor=colour, linewidth=0.8, zorder=5)
        )  # fmt: skip
        canvas.text((x + PAD, y), box, colour, TEXT)
        canvas.take(x, y - BOX / 2, x + wide, y + BOX / 2)


def _arrows(canvas: _Canvas, at: Layout, lefts: list[float]) -> None:
    for number, arrow in enumerate(at.arrows, 1):
        colour = CASE if arrow.pair.directed else CONDITION
        corners = _corners(at, lefts, arrow)
        style = "<|-|>" if arrow.both else "-|>" if arrow.pair.directed else "-"
        codes = [Curve.MOVETO, Curve.CURVE4, Curve.CURVE4, Curve.CURVE4]
        canvas.axis.add_patch(
            FancyArrowPatch(path=Curve(corners, codes), color=colour, linewidth=1.1, fill=False,
                            linestyle="-" if arrow.pair.directed else (0, (4, 2)),
                            arrowstyle=style, mutation_scale=8, zorder=3)
        )  # fmt: skip
        places = [_on(corners, t) for t in TRIED]
        x, y = next((p for p in places if canvas.free(p, BADGE)), places[0])
        canvas.take(x - BADGE, y - BADGE, x + BADGE, y + BADGE)
        badge: dict[str, Any] = {"boxstyle": "circle,pad=0.12", "facecolor": PAPER,
                                 "edgecolor": colour, "linewidth": 0.6}  # fmt: skip
        canvas.axis.text(x, y, str(number), color=colour, fontsize=5.5, ha="center", va="center",
                         bbox=badge, zorder=7)  # fmt: skip


def _corners(at: Layout, lefts: list[float], arrow: Arrow) -> list[Place]:
    """The curve of an arrow: from the right of one box to the left of the other."""
    (from_, row), (to, other) = at.boxes[arrow.general], at.boxes[arrow.special]
    start, end = _y(at, row), _y(at, other)
    if from_ == to:
        left = lefts[from_]
        out = left - min(0.2 + 0.06 * abs(row - other), 0.5)
        return [(left, start), (out, start), (out, end), (left, end)]
    if from_ > to:
        from_, to, start, end = to, from_, end, start
        arrow = Arrow(arrow.special, arrow.general, arrow.pair)
    x = lefts[from_] + _width(arrow.general) + 2 * PAD
    bend = 0.5 * (lefts[to] - x)
    return [(x, start), (x + bend, start), (lefts[to] - bend, end), (lefts[to], end)]


def _on(corners: list[Place], t: float) -> Place:
    weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3)
    x, y = (sum(w * c[k] for w, c in zip(weights, corners, strict=True)) for k in (0, 1))
    return x, y


def _said(arrow: Arrow) -> str:
    """What an arrow says, with the first of its conditions alone, on one line."""
    said = statement(arrow.pair, first=True)
    return said if len(said) <= LETTERS else f"{said[: LETTERS - 1]}…"


def _list(canvas: _Canvas, at: Layout, said: list[str], top: float) -> None:
    for number, (arrow, line) in enumerate(zip(at.arrows, said, strict=True), 1):
        y = top + LINE * (number - 1)
        colour = CASE if arrow.pair.directed else CONDITION
        canvas.text((0.38, y), str(number), colour, SMALL, ha="right")
        canvas.text((0.48, y), line, INK, SMALL)
