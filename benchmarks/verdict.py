"""Judges what was measured: bars beside peers, and growth with length."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median, quantiles

import numpy as np

from benchmarks.contender import OURS, Work
from benchmarks.record import Peak, RowRecord, Seconds, Verdict
from benchmarks.table import MEMORY_GROWTH, TIME_GROWTH, Bar, Growth, Law, Quantity, Row

_RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class Summary:
    """Runs of one piece of work, in seconds.

    Attributes:
        median, low, high: the middle and the quartiles around it.
        fastest: the shortest run.
        runs: how many there were.
    """

    median: float
    low: float
    high: float
    fastest: float
    runs: int


@dataclass(frozen=True, slots=True)
class Judged:
    """What a verdict is about.

    Attributes:
        quantity, work: as in a bar.
        target: most that ours may take, in seconds or bytes.
    """

    quantity: Quantity
    work: str
    target: float | None = None


def summary(times: Sequence[float]) -> Summary:
    """Sums up the runs of a piece of work."""
    low, _, high = quantiles(times, n=4, method="inclusive") if len(times) > 1 else 3 * list(times)
    return Summary(median(times), low, high, min(times), len(times))


def milliseconds(seconds: float) -> str:
    """Milliseconds to a tenth; times below one to a tenth of a microsecond."""
    return f"{1e3 * seconds:.{1 if seconds >= 1e-3 else 4}f}"


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, float, float]:
    """Returns ours / theirs of the medians, and where 95 % of its bootstrap resamples lie."""
    draw = np.random.default_rng(0)
    middles = [
        np.median(draw.choice(np.asarray(times), (_RESAMPLES, len(times))), axis=1)
        for times in (ours, theirs)
    ]
    low, high = np.quantile(middles[0] / middles[1], (0.025, 0.975))
    return median(ours) / median(theirs), float(low), float(high)


def verdicts(row: Row, record: RowRecord) -> list[Verdict]:
    """Judges all bars of a row, and its growth where that was measured."""
    found = [
        _against(bar, record["seconds"], record["memory"])
        for bar in row.bars
        if bar.peer in record["seconds"]
    ]
    if "growth_seconds" in record and row.growth is not None:
        found += _growth(row, row.growth, record)
    return found


def _against(bar: Bar, seconds: Seconds, memory: Mapping[str, Mapping[str, Peak]]) -> Verdict:
    work = bar.work.value
    if bar.quantity is Quantity.TIME:
        ours, theirs = seconds[OURS][work], seconds[bar.peer][work]
        figures, target = ratio(ours, theirs), bar.at_most * median(theirs)
        both = f"{milliseconds(median(ours))} ms beside {milliseconds(median(theirs))} ms"
    else:
        small, large = memory[OURS][work], memory[bar.peer][work]
        figures = (
            small["peak"] / large["peak"],
            min(small["peaks"]) / max(large["peaks"]),
            max(small["peaks"]) / min(large["peaks"]),
        )
        target = bar.at_most * large["peak"]
        both = f"{small['peak'] / 1e6:.0f} MB beside {large['peak'] / 1e6:.0f} MB"
    return _verdict(
        Judged(bar.quantity, work, target),
        f"{_share(bar.at_most)} of {bar.peer}",
        figures,
        bar.at_most,
        f"{_factor(figures[0], bar.quantity)} ({both})",
    )


def _growth(row: Row, growth: Growth, record: RowRecord) -> list[Verdict]:
    lengths, found = growth.lengths, []
    law = growth.law
    for work, by_length in record["growth_seconds"].items():
        costs = [median(by_length[str(n)]) / units(n, law) for n in lengths]
        worst = max(range(len(lengths)), key=lambda i: costs[i])
        figure = costs[worst] / costs[0]
        _, low, high = ratio(by_length[str(lengths[worst])], by_length[str(lengths[0])])
        scale = units(lengths[0], law) / units(lengths[worst], law)
        found.append(
            _verdict(
                Judged(Quantity.TIME, work),
                f"within {TIME_GROWTH:g} of {law.value}",
                (figure, low * scale, high * scale),
                TIME_GROWTH,
                f"{figure:.2f} at L = {lengths[worst]}, {costs[-1] / costs[0]:.2f} at the longest",
            )
        )
    peaks = {int(n): peak for n, peak in record["growth_memory"].items()}
    if not peaks:
        return found
    least = min(peaks)
    shares = {n: peak["peak"] / n / (peaks[least]["peak"] / least) for n, peak in peaks.items()}
    worst = max(shares, key=lambda n: shares[n])
    found.append(
        _verdict(
            Judged(Quantity.MEMORY, Work.TRAINING.value),
            f"within {MEMORY_GROWTH:g} of L",
            3 * (shares[worst],),
            MEMORY_GROWTH,
            f"{shares[worst]:.2f} at L = {worst}, {shares[max(peaks)]:.2f} at the longest",
        )
    )
    if growth.chunk_states is not None:
        found.append(_chunk_states(row, growth, peaks))
    return found


def _chunk_states(row: Row, growth: Growth, peaks: Mapping[int, Peak]) -> Verdict:
    """Judges memory beyond the unavoidable, in tensors of one float32 state per chunk."""
    assert growth.chunk_states is not None
    extra = {
        n: (p["peak"] - p["unavoidable"]) / chunk_state_bytes(row, p, n) for n, p in peaks.items()
    }
    worst = max(extra, key=lambda n: extra[n])
    return _verdict(
        Judged(Quantity.MEMORY, Work.TRAINING.value),
        f"at most {growth.chunk_states:g} states per chunk beyond arguments, output, gradients",
        3 * (extra[worst],),
        growth.chunk_states,
        f"{extra[worst]:.2f} at L = {worst}, {extra[max(peaks)]:.2f} at the longest",
    )


def chunk_state_bytes(row: Row, peak: Peak, length: int) -> int:
    """Bytes of one float32 state per chunk, `[B, H, L / chunk, K, V]`."""
    assert peak["chunk"] is not None
    B, H, K, V = (row.sizes[name] for name in "BHKV")
    return 4 * B * H * K * V * math.ceil(length / peak["chunk"])


def units(length: int, law: Law) -> float:
    """Work that the law allows at a length."""
    return length * (math.log2(length) if law is Law.FFT else 1)


def _verdict(
    judged: Judged, bar: str, figures: tuple[float, float, float], at_most: float, says: str
) -> Verdict:
    figure, low, high = figures
    if low <= at_most < high:
        says += f"; within the noise, {low:.2f} to {high:.2f}"
    return {
        "bar": f"{judged.quantity.value} of {judged.work} {bar}",
        "quantity": judged.quantity.value,
        "work": judged.work,
        "target": judged.target,
        "figure": figure,
        "at_most": at_most,
        "low": low,
        "high": high,
        "reached": figure <= at_most,
        "says": says,
    }


def _share(at_most: float) -> str:
    return f"at most {at_most:g}" if at_most >= 1 else f"at most 1/{1 / at_most:g}"


def _factor(figure: float, quantity: Quantity) -> str:
    if quantity is Quantity.MEMORY:
        return f"{figure:.2f} of it" if figure >= 1 else f"1/{1 / figure:.1f} of it"
    return f"{1 / figure:.2f} times as fast" if figure < 1 else f"{figure:.2f} times the time"
