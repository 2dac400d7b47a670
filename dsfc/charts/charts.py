"""Charts as SVG text: static, small, of the colours of the page they stand in."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import StringIO
from typing import Any, Final

import matplotlib
import numpy as np
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullLocator
from numpy.typing import NDArray

Array = NDArray[Any]

INK = "#123456"
"""Stands for the colour of the text around a chart."""

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#999999")
"""Colours that readers with any kind of sight tell apart (Okabe and Ito 2008)."""

WIDE, HIGH = 4.4, 2.9
"""Inches of a chart: letters of 9 points can be read on a telephone."""

DOTS = 1500
"""Most points of a scatter."""

DECADES = 30.0
"""From this factor on the powers of ten are ticks enough."""

EVEN = 3.0
"""Up to this factor a linear axis shows values better than a logarithmic one."""

SPAN = 1e-12
"""Smallest part of the largest value that a logarithmic colour shows."""

ABOVE: Final = "outside upper center"
"""Where names stand of what fills its frame: in a row that covers nothing."""

_STYLE: Any = {
    "svg.hashsalt": "dsfc",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.facecolor": "none",
    "axes.formatter.useoffset": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "figure.facecolor": "none",
    "axes.prop_cycle": cycler(color=COLOURS),
}


@dataclass(frozen=True)
class Line:
    """One line of a chart.

    Attributes:
        x: where.
        y: how high.
        label: what it is; empty for none.
        dashed: whether it is one to compare with.
    """

    x: Array
    y: Array
    label: str = ""
    dashed: bool = False


def lines(
    drawn: Sequence[Line],
    across: str,
    up: str,
    label: str,
    logarithmic: tuple[bool, bool] = (False, False),
) -> str:
    """Returns lines in one frame.

    Args:
        drawn: the lines.
        across: what the horizontal axis is.
        up: what the vertical axis is.
        label: what a reader who does not see the chart is told.
        logarithmic: whether the horizontal and the vertical axis may be; the vertical one is
            where its values differ by more than a factor `EVEN`.
    """
    with _figure(label, WIDE, HIGH) as (axis, svg):
        for line in drawn:
            style = {"linestyle": "--", "linewidth": 1.0} if line.dashed else {"linewidth": 1.5}
            few = len(line.x) <= 8 and not line.dashed
            axis.plot(
                line.x, line.y, marker="o" if few else "", markersize=3, label=line.label or None,
                **style,
            )  # fmt: skip
        if logarithmic[0]:
            axis.set_xscale("log")
            axis.xaxis.set_minor_locator(NullLocator())
        if logarithmic[1] and _spread(drawn) > EVEN:
            axis.set_yscale("log", nonpositive="mask")
            if _spread(drawn) > DECADES:
                axis.yaxis.set_minor_locator(NullLocator())
        axis.set_xlabel(across)
        axis.set_ylabel(up)
        if any(line.label for line in drawn):
            axis.legend()
    return svg[0]


def plane(values: Array, label: str) -> str:
    """Returns points of the complex plane, beside the unit circle.

    Args:
        values: complex numbers.
        label: what a reader who does not see the chart is told.
    """
    flat = _some(np.asarray(values).reshape(-1))
    with _figure(label, HIGH + 0.3, HIGH) as (axis, svg):
        turn = np.linspace(0, 2 * np.pi, 181)
        axis.plot(np.cos(turn), np.sin(turn), color=INK, linewidth=0.7, linestyle=":")
        axis.axhline(0, color=INK, linewidth=0.4)
        axis.axvline(0, color=INK, linewidth=0.4)
        axis.plot(flat.real, flat.imag, ".", markersize=3.5, alpha=0.6)
        reach = max(1.08, 1.05 * float(np.abs(flat).max(initial=0)))
        axis.set_xlim(-reach, reach)
        axis.set_ylim(-reach, reach)
        axis.set_aspect("equal")
        axis.set_xlabel("Re λ")
        axis.set_ylabel("Im λ")
    return svg[0]


def points(groups: Mapping[str, tuple[Array, Array]], across: str, up: str, label: str) -> str:
    """Returns points of several groups in one frame, and a line at 1.

    Args:
        groups: name → where, how high.
        across: what the horizontal axis is.
        up: what the vertical axis is.
        label: what a reader who does not see the chart is told.
    """
    with _figure(label, WIDE, HIGH) as (axis, svg):
        for name, (x, y) in groups.items():
            axis.plot(_some(x), _some(y), ".", markersize=2.5, alpha=0.7, label=name)
        axis.axhline(1, color=INK, linewidth=0.7, linestyle=":")
        axis.set_xlabel(across)
        axis.set_ylabel(up)
        if len(groups) > 1:
            axis.figure.legend(loc=ABOVE, markerscale=2, ncols=len(groups))
    return svg[0]


def strip(columns: Mapping[str, Array], up: str, label: str) -> str:
    """Returns columns of points, one for each name, the numbers of each ascending to the right.

    Args:
        columns: name → real numbers.
        up: what the numbers are.
        label: what a reader who does not see the chart is told.
    """
    with _figure(label, WIDE, HIGH) as (axis, svg):
        for place, values in enumerate(columns.values()):
            flat = _some(np.sort(np.asarray(values).reshape(-1)))
            across = place + np.linspace(-0.35, 0.35, len(flat)) if len(flat) > 1 else [place]
            axis.plot(across, flat, ".", markersize=3, alpha=0.6)
        axis.axhline(1, color=INK, linewidth=0.7, linestyle=":")
        axis.set_xticks(range(len(columns)), list(columns))
        axis.set_ylabel(up)
    return svg[0]


def bars(parts: Mapping[str, Array], edges: Sequence[float], across: str, label: str) -> str:
    """Returns the shares of values in bins, one group of bars for each name.

    Args:
        parts: name → share of each bin.
        edges: of the bins, one more; the last may be infinite.
        across: what is counted.
        label: what a reader who does not see the chart is told.
    """
    names = [
        f"≥ {low:g}" if not np.isfinite(high) else f"{low:g}–{high:g}"
        for low, high in itertools.pairwise(edges)
    ]
    with _figure(label, WIDE, HIGH) as (axis, svg):
        width = 0.8 / max(1, len(parts))
        for k, (name, values) in enumerate(parts.items()):
            places = np.arange(len(values)) + (k - (len(parts) - 1) / 2) * width
            axis.bar(places, values, width, label=name)
        axis.set_xticks(range(len(names)), names, rotation=60, ha="right", fontsize=7)
        axis.set_xlabel(across)
        axis.set_ylabel("share")
        if len(parts) > 1:
            axis.figure.legend(loc=ABOVE, ncols=len(parts))
    return svg[0]


def map_of(
    values: Array, across: str, up: str, label: str, rows: tuple[float, float] | None = None
) -> str:
    """Returns a matrix as an image of logarithmic colours, its first row at the top, zeros blank.

    Args:
        values: `[rows, columns]`, not negative.
        across: what the columns are.
        up: what the rows are.
        label: what a reader who does not see the chart is told.
        rows: the numbers of the first and the last row; from 0 on where left out.
    """
    largest = float(np.max(values, initial=0.0))
    shown = np.ma.masked_less_equal(values, largest * SPAN)
    first, last = rows or (0, len(values) - 1)
    half = (last - first) / max(1, len(values) - 1) / 2 or 0.5
    with _figure(label, HIGH + 0.7, HIGH) as (axis, svg):
        norm: Normalize | None = None
        if largest > 0:
            low = float(shown.min())
            norm = LogNorm(low if low < largest else largest / 10, largest)
        extent = (-0.5, values.shape[1] - 0.5, last + half, first - half)
        image = axis.imshow(shown, norm=norm, cmap="viridis", extent=extent, aspect="auto",
                            interpolation="none")  # fmt: skip
        if norm is not None:
            bar = axis.figure.colorbar(image, ax=axis)
            bar.outline.set_visible(False)
        for tokens in (axis.xaxis, axis.yaxis):
            tokens.set_major_locator(MaxNLocator("auto", integer=True))
        axis.set_xlabel(across)
        axis.set_ylabel(up)
    return svg[0]


def _spread(drawn: Sequence[Line]) -> float:
    """The largest positive value over the smallest; 1 where there is none."""
    values = np.concatenate([np.asarray(line.y, float) for line in drawn] or [np.ones(1)])
    positive = values[np.isfinite(values) & (values > 0)]
    return float(positive.max() / positive.min()) if len(positive) else 1.0


def _some(values: Array) -> Array:
    """At most `DOTS` values, evenly spread."""
    if len(values) <= DOTS:
        return values
    return np.asarray(values[np.linspace(0, len(values) - 1, DOTS).round().astype(int)])


@contextmanager
def _figure(label: str, wide: float, high: float) -> Iterator[tuple[Axes, list[str]]]:
    """A frame to draw in, with room for its labels; the list holds its text in the end."""
    with matplotlib.rc_context({**_STYLE, "backend": "Agg"}):
        figure = Figure(figsize=(wide, high), layout="constrained")
        svg: list[str] = []
        yield figure.add_subplot(), svg
        text = StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
        svg.append(_inline(text.getvalue(), label))


def _inline(text: str, label: str) -> str:
    """A figure as a part of a page: no head, identifiers of its own, the colour of the text."""
    body = text[text.index("<svg") :]
    mark = "c" + hashlib.sha256(f"{label}{body}".encode()).hexdigest()[:8]
    body = re.sub(r"<metadata>.*?</metadata>\s*", "", body, flags=re.DOTALL)
    body = re.sub(r'\bid="([^"]+)"', rf'id="{mark}-\1"', body)
    body = re.sub(r'(href="#|url\(#)', rf"\1{mark}-", body)
    body = body.replace(INK, "currentColor")
    width, height = re.findall(r'(?:width|height)="([\d.]+)pt"', body)[:2]
    spoken = label.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'viewBox="0 0 {width} {height}" role="img" aria-label="{spoken}" '
        f'style="width:100%;max-width:{float(width) * 4 / 3:.0f}px;height:auto">'
    )
    return head + body[body.index(">") + 1 :]
