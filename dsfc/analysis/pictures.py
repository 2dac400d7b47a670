"""Analyses as charts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from dsfc.analysis.frequency import Response
from dsfc.analysis.influence import FAINT, Influence
from dsfc.analysis.kernel import Kernel
from dsfc.analysis.spectrum import EDGES, Array, Spectrum, histogram
from dsfc.charts.charts import Line, bars, lines, map_of, plane, points, strip

HEADS = 4
"""Most heads that have columns and bars of their own."""


def grouped(spectra: Sequence[Spectrum]) -> Iterator[tuple[Spectrum, list[str]]]:
    """Yields spectra with the names of all states that have the same, in the same gauge."""
    left = list(spectra)
    while left:
        first = left.pop(0)
        same = [
            s for s in left if s.paper == first.paper and np.array_equal(s.values, first.values)
        ]
        left = [s for s in left if s not in same]
        yield first, [first.state, *(s.state for s in same)]


def spectrum(values: Array, label: str) -> str:
    """Returns eigenvalues: complex ones in the plane, real ones over tokens, by head.

    Real ones that are the same at every token stand in a column for each head.

    Args:
        values: `[tokens, heads, eigenvalues]`.
        label: what a reader who does not see the chart is told.
    """
    if np.iscomplexobj(values):
        return plane(values, label)
    if len(values) == 1:
        return strip(_by_head(values), "λ", label)
    tokens = np.arange(len(values))
    columns = {
        name: (np.repeat(tokens, x[0].size), x.reshape(-1)) for name, x in _by_head(values).items()
    }
    return points(columns, "token", "λ", label)


def sizes_of_eigenvalues(values: Array, label: str) -> str:
    """Returns the share of |λ| in each bin, by head where there are few."""
    shares = {name: histogram(x) for name, x in _by_head(values).items()}
    return bars(shares, EDGES, "|λ|", label)


def _by_head(values: Array) -> dict[str, Array]:
    heads = values.shape[1]
    if not 1 < heads <= HEADS:
        return {"all": values} if heads == 1 else {f"all {heads} heads": values}
    return {f"head {k}": values[:, k] for k in range(heads)}


def memory(kernels: Mapping[str, Kernel], label: str) -> str:
    """Returns memory functions ρ(τ), τ ≥ 1, each in parts of its largest value.

    Args:
        kernels: name → Φ.
        label: what a reader who does not see the chart is told.
    """
    drawn = []
    for name, kernel in kernels.items():
        past = kernel.memory[1:]
        largest = past.max(initial=0.0)
        if largest > 0:
            drawn.append(Line(np.arange(1, len(past) + 1), past / largest, name))
    return lines(drawn, "distance τ in tokens", "ρ(τ) / max ρ", label, (False, True))


def kernel_map(kernel: Kernel, label: str) -> str:
    """Returns ‖Φ_{ij}‖ as a map."""
    return map_of(kernel.norms, "token j", "token i", label)


def influence_map(influence: Influence, label: str) -> str:
    """Returns I(t, s) as a map, of the rows that were computed."""
    ends = float(influence.rows[0]), float(influence.rows[-1])
    return map_of(influence.values, "token s", "token t", label, ends)


def distances(
    influences: Mapping[str, Array], slowest: Mapping[str, float | None], label: str
) -> str:
    """Returns influence by distance, in parts of that at τ = 1, and the slope that bounds it.

    Args:
        influences: name → means of I(t, t - τ), `[sequences, τ]`.
        slowest: name → the largest |λ| of its states, a; None without a state.
        label: what a reader who does not see the chart is told.
    """
    drawn = []
    for name, values in influences.items():
        mean = values.mean(axis=0)
        if len(mean) < 2 or mean[1] <= FAINT:
            continue
        lags = np.arange(1, len(mean))
        drawn.append(Line(lags, mean[1:] / mean[1], name))
        a = slowest.get(name)
        if a is not None and a < 1 and len(influences) == 1:
            drawn.append(Line(lags, a ** (lags - 1.0), f"slope log a, a = {a:.4g}", True))
    return lines(drawn, "distance τ in tokens", "I(τ) / I(1)", label, (False, True))


def responses(drawn: Mapping[str, Response], label: str) -> str:
    """Returns gains over frequency."""
    shown = [
        Line(r.angles / np.pi, np.where(np.isfinite(r.gains), r.gains, np.nan), name, not r.exact)
        for name, r in drawn.items()
    ]
    return lines(shown, "frequency θ / π", "gain |H|", label, (False, True))


def mode_costs(costs: Mapping[str, tuple[Array, Array]], up: str, label: str) -> str:
    """Returns costs over the length of the sequence.

    Args:
        costs: name → lengths, costs.
        up: what is counted.
        label: what a reader who does not see the chart is told.
    """
    shown = [Line(x, y, name) for name, (x, y) in costs.items()]
    return lines(shown, "tokens", up, label, (True, True))
