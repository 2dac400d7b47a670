"""Greek and ASCII spellings of names, and what to write instead of anything else."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsfc.syntax.letters import GREEK, describe, fold, is_legal, legal_spelling, unfold

NAMES = st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,20}", fullmatch=True)


@pytest.mark.parametrize(
    ("spelling", "name"),
    [("η", "eta"), ("W_Δ", "W_Delta"), ("Σ", "sum"), ("Π", "prod"), ("α2", "alpha2"), ("x", "x")],
)
def test_a_letter_stands_for_its_name(spelling, name):
    assert fold(spelling) == name


@pytest.mark.parametrize(
    ("name", "spelling"),
    [("W_Delta", "W_Δ"), ("alpha2", "α2"), ("Deltat", "Deltat"), ("iota", "iota"), ("sum", "sum")],
)
def test_names_that_spell_a_letter_are_printed_as_it(name, spelling):
    assert unfold(name) == spelling


@given(NAMES)
def test_printing_a_name_in_greek_keeps_it(name):
    assert fold(unfold(name)) == name


def test_no_two_letters_share_a_name():
    assert len(set(GREEK.values())) == len(GREEK)
    assert all(name.isascii() and name.isidentifier() for name in GREEK.values())


@pytest.mark.parametrize(
    ("char", "legal"),
    [
        ("−", "-"), ("µ", "μ"), ("ϕ", "φ"), ("а", "a"), ("Α", "A"), ("ﬁ", "fi"), ("𝐱", "x"),
        ("é", "e"), ("∑", "Σ"), ("≠", "!="), ("\u00a0", " "), ("\u2028", " "), ("₁", "1"),
        ("@", "·"), ("日", None),
    ],
)  # fmt: skip
def test_other_characters_have_a_nearest_legal_spelling(char, legal):
    assert legal_spelling(char) == legal


@given(st.characters())
def test_every_character_has_a_description_and_no_spelling_is_itself_illegal(char):
    assert describe(char).isprintable()
    spelling = legal_spelling(char)
    if spelling is not None and len(spelling) == 1 and unicodedata.category(spelling)[0] == "L":
        assert is_legal(spelling)
