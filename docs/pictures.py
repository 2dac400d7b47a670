"""Draws the pictures of the README from specs and measured results: `python docs/pictures.py`.

They lie in `docs/pictures/`. Spectra are those of emitted modules as they start; times are those of
`benchmarks/results`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import median

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent)]

from spectrum import Array, spectra, start  # noqa: E402 - the extensions of these pages

import dsfc  # noqa: E402
from benchmarks import record  # noqa: E402
from benchmarks.contender import OURS, Work  # noqa: E402
from benchmarks.tables import RESULTS  # noqa: E402

FOLDER = HERE / "pictures"
BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#666666"
NAMES = {"s4d": "S4D", "lru": "LRU", "rg_lru": "RG-LRU of Griffin"}
"""Mixers whose spectra are drawn."""


def draw_spectra() -> Figure:
    """Eigenvalues of Λ: in the complex plane, and of real ones each over tokens."""
    figure = Figure(figsize=(10, 3.4), layout="constrained")
    for axis, (name, title) in zip(figure.subplots(1, 3), NAMES.items(), strict=True):
        it = dsfc.load(name)
        (values,) = (s.values for s in spectra(it, start(it)))
        (_plane if np.iscomplexobj(values) else _strip)(axis, values)
        axis.set_title(title, fontsize=11)
        axis.spines[["top", "right"]].set_visible(False)
    return figure


def _plane(axis: Axes, values: Array) -> None:
    turn = np.linspace(0, 2 * np.pi, 400)
    axis.plot(np.cos(turn), np.sin(turn), "--", color=GREY, linewidth=0.9)
    axis.plot(values.real.ravel(), values.imag.ravel(), ".", color=BLUE, markersize=4)
    axis.set(aspect="equal", xlabel="Re λ", ylabel="Im λ", xticks=(-1, 0, 1), yticks=(-1, 0, 1))


def _strip(axis: Axes, values: Array) -> None:
    ranked = values[:, np.argsort(values.mean(axis=0), kind="stable")]
    tokens, count = ranked.shape
    shown = ranked[:, np.linspace(0, count - 1, 16).round().astype(int)]
    for k, column in enumerate(shown.T):
        within = k + 0.1 + 0.8 * np.arange(tokens) / tokens
        axis.plot(within, column, ".", color=BLUE, markersize=3)
    axis.axhline(1, color=GREY, linewidth=0.9, linestyle="--")
    axis.set(xlabel="eigenvalues, each over 32 tokens", ylabel="λ", xticks=())


def draw_times() -> Figure:
    """How many times as fast kernels in C are as what people run on a CPU."""
    rows = [r for r in record.read(RESULTS)["rows"] if r["name"].endswith("_c")]
    rows = [r for r in rows if "skipped" not in r and len(r["seconds"]) > 1]
    labels, times = [], []
    for row in rows:
        peer = next(name for name in row["seconds"] if name != OURS)
        labels.append(f"{row['spec']}\nbeside {peer}")
        ours, theirs = row["seconds"][OURS], row["seconds"][peer]
        times.append([median(theirs[w.value]) / median(ours[w.value]) for w in Work])
    figure = Figure(figsize=(10, 0.62 * len(rows) + 1), layout="constrained")
    axis = figure.subplots()
    at = np.arange(len(rows))[::-1]
    for shift, colour, work, column in zip(
        (0.18, -0.18), (BLUE, ORANGE), Work, np.array(times).T, strict=True
    ):
        bars = axis.barh(at + shift, column, 0.34, color=colour, label=work.value)
        axis.bar_label(bars, [f"{x:.1f}" for x in column], padding=3, fontsize=8)
    axis.axvline(1, color=GREY, linewidth=0.9, linestyle="--")
    axis.set_yticks(at, labels, fontsize=8)
    axis.set(xscale="log", xlabel="times as fast; two threads, float32")
    axis.set_xlim(0.9, 2 * float(np.max(times)))
    axis.xaxis.set_major_formatter("{x:g}")
    axis.legend(loc="lower right", frameon=False)
    axis.spines[["top", "right"]].set_visible(False)
    return figure


def main() -> None:
    """Writes all pictures."""
    mpl.use("Agg")
    FOLDER.mkdir(exist_ok=True)
    for name, figure in (("spectra", draw_spectra()), ("times", draw_times())):
        path = FOLDER / f"{name}.png"
        figure.savefig(path, dpi=130)
        print(f"wrote {path.relative_to(HERE.parent)}")


if __name__ == "__main__":
    main()
