"""The style of the pictures: one palette that the colour-blind can read, one way to save."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, VERMILION, GREEN, PURPLE = "#0072b2", "#d55e00", "#009e73", "#cc79a7"
"""Okabe and Ito's palette, as far as it is needed."""

GREY, LIGHT = "#555555", "#bbbbbb"
"""Of what to compare with."""


def subplots(
    rows: int,
    columns: int,
    width: float,
    height: float,
    *,
    sharex: bool = False,
    sharey: bool | str = False,
) -> tuple[Figure, Any]:
    """Returns a figure and its axes, `[rows, columns]` without what is 1; sizes in inches."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot.subplots(
        rows,
        columns,
        figsize=(width, height),
        sharex=sharex,
        sharey=sharey,
        layout="constrained",
    )


def open_frame(axis: Axes) -> None:
    """Leaves the two lines of the frame that carry the scales."""
    axis.spines[["top", "right"]].set_visible(False)


def save(figure: Figure, path: Path) -> Path:
    """Writes a picture and forgets the figure."""
    from matplotlib import pyplot

    figure.savefig(path, dpi=120)
    pyplot.close(figure)
    return path
