"""Words of the language that a name may be meant as."""

from __future__ import annotations

import pytest

from dsfc.syntax.token_names import STARTERS, near_word


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("dim", "dims"), ("params", "param"), ("parameter", "param"), ("weights", "param"),
        ("states", "state"), ("inputs", "input"), ("claims", "claim"), ("let", None),
        ("output", None), ("prediction", None), ("q", None),
    ],
)  # fmt: skip
def test_a_line_starts_with_a_word(name: str, word: str | None) -> None:
    assert near_word(name, STARTERS) == word


@pytest.mark.parametrize(
    ("name", "word"), [("pos", "positive"), ("cplx", "complex"), ("in", None), ("init", None)]
)
def test_a_flag_may_be_cut_short(name: str, word: str | None) -> None:
    assert near_word(name, {"FLAG"}) == word


def test_only_what_the_grammar_takes_is_offered() -> None:
    assert near_word("extend", {"_EXTENDS"}) == "extends"
    assert near_word("extend", {"FLAG"}) is None
