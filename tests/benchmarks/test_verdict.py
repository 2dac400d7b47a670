"""What is said of measurements."""

from __future__ import annotations

import dataclasses

import pytest

from benchmarks.record import Peak, RowRecord, Verdict
from benchmarks.table import Bar, Growth, Quantity, Row, Work, row
from benchmarks.verdict import ratio, summary, verdicts

MB = 10**6


def a_row(bar: Bar, **changes: object) -> Row:
    return dataclasses.replace(row("scalar"), bars=(bar,), **changes)


def measured(ours: list[float], theirs: list[float], peaks: tuple[int, int] = (1, 1)) -> RowRecord:
    work = Work.TRAINING.value
    return {
        "seconds": {"dsfc": {work: ours}, "peer": {work: theirs}},
        "memory": {
            name: {work: peak(size * MB)}
            for name, size in zip(("dsfc", "peer"), peaks, strict=True)
        },
    }


def peak(size: int, unavoidable: int = 0) -> Peak:
    return {"peak": size, "peaks": [size] * 3, "unavoidable": unavoidable, "chunk": 64}


def time_bar(at_most: float) -> Bar:
    return Bar(Quantity.TIME, Work.TRAINING, "peer", at_most)


def only(found: list[Verdict]) -> Verdict:
    (one,) = found
    return one


def test_a_summary_is_the_median_with_its_quartiles() -> None:
    found = summary([3.0, 1.0, 2.0, 5.0, 4.0])
    assert (found.median, found.low, found.high, found.fastest, found.runs) == (3, 2, 4, 1, 5)
    assert summary([2.0]).low == summary([2.0]).high == 2.0


def test_a_ratio_is_of_medians_and_its_noise_is_that_of_both() -> None:
    figure, low, high = ratio([1.0, 1.0, 1.0, 9.0, 1.0], [2.0] * 5)
    assert figure == 0.5 and low == 0.5 and high > 0.5
    assert ratio([1.0] * 9, [4.0] * 9) == (0.25, 0.25, 0.25)


@pytest.mark.parametrize(("at_most", "reached"), [(1 / 5, False), (1 / 4, True), (1.0, True)])
def test_a_bar_of_time_is_a_share_of_the_peers_median(at_most: float, reached: bool) -> None:
    found = only(verdicts(a_row(time_bar(at_most)), measured([0.01] * 5, [0.04] * 5)))
    assert found["reached"] is reached and found["figure"] == 0.25
    assert "4.00 times as fast (10.0 ms beside 40.0 ms)" in found["says"]


def test_a_bar_within_the_noise_says_so() -> None:
    ours = [0.9, 1.1, 0.95, 1.05, 1.0]
    found = only(verdicts(a_row(time_bar(1.0)), measured(ours, [1.0] * 5)))
    assert "within the noise" in found["says"]
    clear = only(verdicts(a_row(time_bar(2.0)), measured(ours, [1.0] * 5)))
    assert "noise" not in clear["says"]


def test_a_bar_of_memory_compares_peaks() -> None:
    bar = Bar(Quantity.MEMORY, Work.TRAINING, "peer", 1 / 4)
    assert only(verdicts(a_row(bar), measured([1.0], [1.0], (20, 100))))["reached"]
    assert not only(verdicts(a_row(bar), measured([1.0], [1.0], (30, 100))))["reached"]


def test_a_bar_beside_a_peer_that_did_not_run_is_not_judged() -> None:
    other = dataclasses.replace(time_bar(1.0), peer="absent")
    assert verdicts(a_row(other), measured([1.0], [1.0])) == []


def test_a_row_of_one_token_has_no_growth() -> None:
    (bar,) = verdicts(a_row(time_bar(1.5), growth=None), measured([2e-5], [4e-5]))
    assert bar["reached"] and "0.0200 ms beside 0.0400 ms" in bar["says"]


def grown(seconds: dict[int, float], peaks: dict[int, Peak]) -> RowRecord:
    by_length = {str(n): [s] * 3 for n, s in seconds.items()}
    return measured([1.0], [1.0]) | {
        "growth_seconds": {Work.TRAINING.value: by_length},
        "growth_memory": {str(n): p for n, p in peaks.items()},
    }


def test_growth_is_judged_per_token_of_the_shortest_length() -> None:
    lengths = (1024, 2048, 4096)
    tall = a_row(time_bar(1.0), growth=Growth(lengths=lengths))
    record = grown({1024: 1.0, 2048: 2.8, 4096: 4.0}, {n: peak(n * MB) for n in lengths})
    _, time, memory = verdicts(tall, record)
    assert not time["reached"] and time["figure"] == pytest.approx(1.4)
    assert "1.40 at L = 2048, 1.00 at the longest" in time["says"]
    assert memory["reached"] and memory["figure"] == 1.0


def test_memory_beyond_the_unavoidable_is_counted_in_states_per_chunk() -> None:
    lengths = (1024, 2048)
    state = 4 * 8 * 128 * 128  # one float32 state of the row, all heads
    peaks = {n: peak(5 * MB + 2 * state * n // 64, 5 * MB) for n in lengths}
    tall = a_row(time_bar(1.0), growth=Growth(lengths=lengths, chunk_states=1.5))
    *_, states = verdicts(tall, grown({1024: 1.0, 2048: 2.0}, peaks))
    assert not states["reached"] and states["figure"] == pytest.approx(2.0)
