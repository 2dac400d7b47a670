"""The lexer of Pygments: the parser's tokens by other names, on every shipped spec."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
from pygments.token import (
    Comment,
    Error,
    Keyword,
    Name,
    Number,
    Operator,
    Punctuation,
    String,
    Whitespace,
)

from dsfc.syntax.grammar import reserved, tokens
from dsfc.syntax.lex import KEYWORDS
from dsfc.syntax.pygments_lexer import DsfLexer

ROOT = Path(__file__).parents[2]
SPECS = sorted((ROOT / "specs").glob("*.dsf"))


def lexed(text: str) -> list[tuple[int, object, str]]:
    return list(DsfLexer().get_tokens_unprocessed(text))


@pytest.mark.parametrize("path", SPECS, ids=lambda it: it.stem)
def test_every_spec_is_lexed_whole_and_as_the_parser_lexes_it(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    pieces = lexed(text)
    assert "".join(piece for *_, piece in pieces) == text
    kinds = {at: (kind, piece) for at, kind, piece in pieces}
    assert all(kind is not Error for kind, _ in kinds.values())
    for token in tokens(text):
        if token[0] == "\n":
            continue
        kind, piece = kinds[token.start_pos]
        assert piece == token.rstrip("\n")
        assert (kind in Name) == (token.type == "NAME")
        assert (kind in Keyword or kind is Operator.Word) == (token.type in KEYWORDS)
        assert (kind is String) == (token.type == "STRING")
        assert (kind is Number) == (token.type == "NUMBER")


@pytest.mark.parametrize("word", [word for kind in sorted(KEYWORDS) for word in reserved(kind)])
def test_the_keywords_are_those_of_the_grammar(word: str) -> None:
    # `layer` is a word before what a layer has, and a name elsewhere.
    (_, kind, piece), *_ = lexed("layer norm" if word == "layer" else word)
    assert piece == word and (kind in Keyword or kind is Operator.Word)
    for near in (f"{word}s", f"{word}_", f"α{word}", word.upper()):
        ((_, kind, piece),) = lexed(near)
        assert kind in Name and piece == near


def test_names_are_told_apart_and_nothing_is_lost_between_groups() -> None:
    text = 'mixer  m extends\tqkv { y = exp(u) # a\n  f(x) = "b"; z = q · k\n}'
    found = lexed(text)
    assert "".join(piece for *_, piece in found) == text
    assert [at for at, _, _ in found] == [
        sum(len(p) for *_, p in found[:k]) for k in range(len(found))
    ]
    by_piece = {piece: kind for _, kind, piece in found}
    assert by_piece["m"] is by_piece["qkv"] is Name.Class
    assert by_piece["y"] is by_piece["z"] is Name.Variable
    assert by_piece["exp"] is by_piece["f"] is Name.Function
    assert by_piece["# a"] is Comment.Single and by_piece["{"] is Punctuation
    assert by_piece["·"] is Operator and by_piece["\t"] is Whitespace


@pytest.mark.parametrize("wrong", ["−", "@", "ß", '"', "_a", "|"])
def test_what_is_no_token_is_an_error(wrong: str) -> None:
    assert any(kind is Error for _, kind, _ in lexed(f"y = {wrong}\n"))


def test_the_entry_point_is_the_lexer() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (entry,) = project["entry-points"]["pygments.lexers"].items()
    assert EntryPoint(*entry, "pygments.lexers").load() is DsfLexer


@pytest.mark.ci
def test_pygments_finds_the_installed_lexer_by_name_and_by_file() -> None:
    assert isinstance(get_lexer_by_name("dsf"), DsfLexer)
    assert isinstance(get_lexer_for_filename("mine.dsf"), DsfLexer)


@pytest.mark.ci
def test_dsfc_parses_and_serves_without_pygments() -> None:
    code = (
        "import sys; sys.modules['pygments'] = None; sys.modules['rich'] = None\n"
        "import dsfc.syntax.parse, dsfc.language_server.server\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
