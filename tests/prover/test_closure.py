"""Closing the difference of two outputs: the rows found, and with either library."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dsfc.prover import closure
from dsfc.prover.closure import Differs, close
from dsfc.prover.field import SympyRing
from dsfc.prover.report import row_text
from dsfc.prover.sizes import chosen
from dsfc.trusted.claim import Claim, Invariant
from dsfc.trusted.entries import Obstacle
from dsfc.trusted.invariant import check_invariant
from dsfc.trusted.statement import state


def claim(a, b) -> Claim:
    return Claim(a, b, (), chosen(a, b, 2))


def test_the_rows_are_the_change_of_basis(system: Callable) -> None:
    a, b = system("attention", "as_state"), system("attention", "eta_gauge")
    rows = close(state(claim(a, b), False))
    texts = [row_text(row) for row in rows]
    assert len(texts) == 8
    assert "A.S[0,0,0] - eta[0] B.S[0,0,0]" in texts


def test_both_libraries_find_the_same_rows(
    system: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = [
        ("attention", "ratio", "ratio_gauged"),
        ("linear", "sum_of_modes", "chain_delayed"),
        ("linear", "rotated_keys", "rotated_conjugate"),
    ]
    for file, left, right in pairs:
        statement = state(claim(system(file, left), system(file, right)), False)
        by_flint = close(statement)
        monkeypatch.setattr(closure, "ring", SympyRing)
        assert close(statement) == by_flint
        monkeypatch.undo()


@pytest.mark.parametrize(
    "file, a, b",
    [
        ("attention", "post", "strict"),
        ("linear", "taps_three", "taps_far"),
        ("gates", "euler", "zoh"),
    ],
)
def test_a_difference_is_seen(system: Callable, file: str, a: str, b: str) -> None:
    assert close(state(claim(system(file, a), system(file, b)), False)) == Differs()


def test_a_row_on_the_states_alone_is_found_for_a_ratio(system: Callable) -> None:
    made = claim(system("attention", "ratio"), system("attention", "ratio_gauged"))
    rows = close(state(made, False))
    check_invariant(made, Invariant(rows, False))


def test_too_many_rows_are_an_obstacle(system: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(closure, "ROW_LIMIT", 2)
    made = claim(system("attention", "as_state"), system("attention", "eta_gauge"))
    with pytest.raises(Obstacle, match="more than 2 rows"):
        close(state(made, False))
