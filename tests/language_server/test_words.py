"""The words and signs of the language: hover on them, and writing them by a backslash."""

from __future__ import annotations

import re

import pytest

from dsfc.language_server.complete import complete
from dsfc.language_server.hover import hover
from dsfc.language_server.words import BACKSLASH
from dsfc.mixer.words import MEANINGS
from dsfc.syntax.grammar import reserved, terminals, tokens
from dsfc.syntax.letters import GREEK
from dsfc.syntax.lex import KEYWORDS
from dsfc.syntax.textmate import OPERATOR, SCOPES


def test_every_keyword_and_operator_has_a_meaning_and_nothing_else_has() -> None:
    words = {word for kind in KEYWORDS for word in reserved(kind)}
    operators = {kind for kind, scope in SCOPES.items() if scope.startswith(OPERATOR)} - KEYWORDS
    signs = {
        sign
        for kind in operators
        for sign in re.sub(r"\\(?!\\)|\(\?:|(?<!\\)\)", "", terminals()[kind]).split("|")
    }
    assert signs | words == set(MEANINGS)


@pytest.mark.parametrize("word", MEANINGS)
def test_each_is_one_token(word: str) -> None:
    (token,) = tokens(word)
    assert token == word


def shown(open_text, text: str) -> str | None:
    found = hover(*open_text(text))
    return None if found is None else found.markdown


@pytest.mark.parametrize(
    "written, word",
    [
        ("y = q ‸· k", "·"),
        ("y = q‸·k", "·"),
        ("y = q‸.k", "."),
        ("y = k ‸⊗ v", "⊗"),
        ("y = k ‸(*) v", "(*)"),
        ("y = k (‸*) v", "(*)"),
        ("y = q ‸* 2", "*"),
        ("y = sum[j ‸≤ i](q)", "≤"),
        ("‸param a : h", "param"),
        ("par‸am a : h", "param"),
        ("param a ‸* : h (", "*"),
        ("y ‸= = 2", "="),
    ],
)
def test_hover_on_a_sign_or_keyword(open_text, written: str, word: str) -> None:
    text = f"mixer m extends qkv {{\n  {written}\n}}\n"
    assert shown(open_text, text) == f"`{word}`: {MEANINGS[word]}"
    assert shown(open_text, f"{text}mixer broken {{ = \n") == f"`{word}`: {MEANINGS[word]}"


@pytest.mark.parametrize("written", ["y = q # ‸· k", 'y = q "‸· k"', "y = 1‸.5 * q", "y = q ‸− k"])
def test_nothing_is_shown_of_what_is_no_sign(open_text, written: str) -> None:
    assert shown(open_text, f"mixer m extends qkv {{\n  {written}\n}}\n") is None


def offered(open_text, text: str) -> dict[str, str]:
    return {it.ascii: it.label for it in complete(*open_text(text))}


@pytest.mark.parametrize(
    "written", ["y = k \\‸", "y = k \\ot‸", "# \\al‸", 'y = q "\\al‸', "= (\\‸", "param w_\\‸"]
)
def test_a_backslash_offers_letters_and_signs_anywhere(open_text, written: str) -> None:
    found = offered(open_text, f"mixer m extends qkv {{\n  {written}")
    assert found == {f"\\{name}": sign for name, sign in BACKSLASH.items()}


def test_the_names_are_those_of_latex_for_every_letter_and_sign_of_the_language() -> None:
    signs = {sign for sign in MEANINGS if not sign.isascii()}
    assert set(BACKSLASH.values()) == signs | set(GREEK)
    wanted = {"alpha": "α", "Delta": "Δ", "Sigma": "Σ", "otimes": "⊗", "cdot": "·", "leq": "≤"}
    assert wanted.items() <= BACKSLASH.items()


def test_without_a_backslash_no_sign_is_offered(open_text) -> None:
    assert not {"⊗", "·"} & set(offered(open_text, "mixer m extends qkv {\n  y = ‸").values())
