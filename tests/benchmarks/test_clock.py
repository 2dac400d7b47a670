"""Who is run when, and which runs count."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from benchmarks.clock import Effort, Run, interleave, undisturbed


def piece(name: str, order: list[str], runs: Iterator[Run]) -> Callable[[], Run]:
    def run() -> Run:
        order.append(name)
        return next(runs)

    return run


def always(seconds: float) -> Iterator[Run]:
    while True:
        yield Run(seconds)


def test_pieces_take_turns_forwards_and_backwards_after_warming_up() -> None:
    order: list[str] = []
    pieces = {name: piece(name, order, always(0.1)) for name in "abc"}
    runs = interleave(pieces, Effort(rounds=3))
    assert "".join(order) == "aabbcc" + "abc" + "cba" + "abc"
    assert {name: len(found) for name, found in runs.items()} == {"a": 3, "b": 3, "c": 3}


def test_a_long_piece_is_run_less_often_but_often_enough() -> None:
    order: list[str] = []
    pieces = {
        "long": piece("long", order, always(1.0)),
        "short": piece("short", order, always(0.1)),
    }
    effort = Effort(rounds=20, seconds=5.0, least=3)
    runs = interleave(pieces, effort)
    assert len(runs["long"]) == 5 and len(runs["short"]) == 20
    assert len(interleave({"x": piece("x", order, always(100.0))}, effort)["x"]) == 3


def test_the_runs_that_warm_up_count_where_they_are_slow() -> None:
    order: list[str] = []
    runs = interleave({"x": piece("x", order, always(30.0))}, Effort(least=3, slow=2.0))
    assert len(order) == 3 and len(runs["x"]) == 3


def test_disturbed_runs_are_repeated_and_left_out() -> None:
    def source() -> Iterator[Run]:
        number = 0
        while True:
            yield Run(9.0, waited=5.0) if number % 2 else Run(1.0, waited=0.01)
            number += 1

    order: list[str] = []
    effort = Effort(rounds=4, seconds=100.0, slow=50.0)
    runs = interleave({"x": piece("x", order, source())}, effort)["x"]
    assert undisturbed(runs, effort.least) == [1.0] * 4
    assert sum(run.disturbed for run in runs) == 3


def test_a_machine_that_is_never_quiet_ends_the_measurement_with_what_there_is() -> None:
    def busy() -> Iterator[Run]:
        while True:
            yield Run(1.0, waited=0.5)

    order: list[str] = []
    effort = Effort(rounds=2, least=2, patience=8.0)
    runs = interleave({"x": piece("x", order, busy())}, effort)["x"]
    assert len(runs) == 8 and undisturbed(runs, effort.least) == [1.0] * 8
