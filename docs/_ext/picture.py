"""Pictures of spectra as SVG text, by no library: the playground draws them in a browser, too.

The colours follow the page, and nothing is loaded.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

TOP = 2.0
"""The largest modulus of an eigenvalue that is drawn; larger ones stand on the edge."""

COLUMNS = 64
"""Most eigenvalues that stand side by side, each with its tokens from left to right."""


@dataclass(frozen=True)
class Frame:
    """A rectangle of the picture and the numbers it shows.

    Attributes:
        left, top, width, height: in units of the picture.
        x, y: smallest and largest number on each side.
    """

    left: float
    top: float
    width: float
    height: float
    x: tuple[float, float]
    y: tuple[float, float]

    def place(self, x: float, y: float) -> tuple[float, float]:
        """Returns where a point stands."""
        across = (x - self.x[0]) / (self.x[1] - self.x[0])
        up = (y - self.y[0]) / (self.y[1] - self.y[0])
        return self.left + across * self.width, self.top + (1 - up) * self.height


def svg(values: Array, label: str, small: bool = False) -> str:
    """Returns the picture of a spectrum, without an empty line.

    Complex eigenvalues stand in the plane beside the unit circle. Real ones stand side by side, in
    ascending order, and each has its tokens from left to right.

    Args:
        values: `[tokens, eigenvalues]`.
        label: what a reader who does not see it is told.
        small: without numbers on the axes, for a table.
    """
    planar = np.iscomplexobj(values)
    lines = _plane(values, small) if planar else _strip(values, small)
    width = _WIDTH if not planar else _HEIGHT
    if small:
        width, height = width - _MARGIN, _HEIGHT - _FOOT
        box = f"{_MARGIN} 0 {width} {height}"
    else:
        height = _HEIGHT
        box = f"0 0 {width} {height}"
    kind = "spectrum small" if small else "spectrum"
    size = f'width="{width // 2 if small else width}" height="{height // 2 if small else height}"'
    head = f'<svg class="{kind}" viewBox="{box}" {size} role="img" aria-label="{label}">'
    return "\n".join((head, *lines, "</svg>"))


_WIDTH, _HEIGHT, _MARGIN, _FOOT = 320, 220, 34, 22


def _plane(values: Array, small: bool) -> Iterable[str]:
    """Points in the complex plane."""
    reach = max(1.08, min(TOP, 1.05 * float(np.abs(values).max())))
    side = _HEIGHT - _MARGIN
    frame = Frame(_MARGIN, 4, side - 4, side - 4, (-reach, reach), (-reach, reach))
    cx, cy = frame.place(0, 0)
    right, _ = frame.place(1, 0)
    yield f'<circle class="one" cx="{cx:.0f}" cy="{cy:.0f}" r="{right - cx:.1f}"/>'
    yield _line(frame, (-reach, 0), (reach, 0))
    yield _line(frame, (0, -reach), (0, reach))
    flat = values.reshape(-1)
    yield _dots(frame.place(z.real, z.imag) for z in _some(flat, 300 if small else 1200))
    if not small:
        yield from _ticks(frame, (-1, 0, 1), (-1, 0, 1), "Re λ", "Im λ")


def _strip(values: Array, small: bool) -> Iterable[str]:
    """One column for each eigenvalue."""
    tokens, count = values.shape
    ranked = values[:, np.argsort(values.mean(axis=0), kind="stable")]
    shown = ranked[:, np.linspace(0, count - 1, min(count, COLUMNS)).round().astype(int)]
    high = min(TOP, max(1.05, 1.05 * float(values.max())))
    low = max(-TOP, min(-0.05, 1.05 * float(values.min()))) if values.min() < 0 else 0.0
    columns = shown.shape[1]
    frame = Frame(_MARGIN, 4, _WIDTH - _MARGIN - 6, _HEIGHT - _FOOT - 8, (0, columns), (low, high))
    yield _line(frame, (0, 1), (columns, 1), "one")
    yield _line(frame, (0, 0), (columns, 0))
    points = _some(np.argwhere(np.ones(shown.T.shape, bool)), 300 if small else 1600)
    within = 0.1 + 0.8 * (np.arange(tokens) + 0.5) / tokens
    yield _dots(frame.place(k + within[i], float(shown[i, k].clip(low, high))) for k, i in points)
    if not small:
        marks = [y for y in (-2, -1, 0, 0.5, 1, 2) if low <= y <= high]
        yield from _ticks(frame, (), marks, "eigenvalues, ascending", "λ")


def _some(values: Array, most: int) -> Array:
    """At most so many, evenly spread."""
    if len(values) <= most:
        return values
    return values[np.linspace(0, len(values) - 1, most).round().astype(int)]


def _dots(points: Iterable[tuple[float, float]]) -> str:
    """Dots as one path: equal ones, on a grid of half a unit, are drawn once."""
    places = dict.fromkeys(f"M{round(2 * x) / 2:g} {round(2 * y) / 2:g}h0" for x, y in points)
    return f'<path class="dots" d="{"".join(places)}"/>'


def _line(
    frame: Frame, start: tuple[float, float], end: tuple[float, float], kind: str = "axis"
) -> str:
    (a, b), (c, d) = frame.place(*start), frame.place(*end)
    return f'<path class="{kind}" d="M{a:.1f} {b:.1f}L{c:.1f} {d:.1f}"/>'


def _ticks(
    frame: Frame, xs: Iterable[float], ys: Iterable[float], across: str, up: str
) -> Iterable[str]:
    foot = frame.top + frame.height
    for x in xs:
        at, _ = frame.place(x, frame.y[0])
        yield f'<text x="{at:.0f}" y="{foot + 11:.0f}" text-anchor="middle">{x:g}</text>'
    for y in ys:
        _, at = frame.place(frame.x[0], y)
        yield f'<text x="{frame.left - 5}" y="{at + 3:.0f}" text-anchor="end">{y:g}</text>'
    # Names of axes stand between the numbers, which are at the ends and in the middle.
    aside, below = frame.left + 0.75 * frame.width, frame.top + 0.3 * frame.height
    yield f'<text x="{aside:.0f}" y="{foot + 11:.0f}" text-anchor="middle">{across}</text>'
    yield f'<text x="{frame.left - 5}" y="{below:.0f}" text-anchor="end">{up}</text>'
