"""The grammar as Pygments colours with it: the rules of the editors' grammar, by other names.

Pygments finds the lexer by the entry point `pygments.lexers`. No other module imports Pygments, so
dsfc runs without it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from pygments.lexer import RegexLexer
from pygments.token import (
    Comment,
    Keyword,
    Name,
    Number,
    Operator,
    Punctuation,
    String,
    Whitespace,
)

from dsfc.syntax.grammar import terminals
from dsfc.syntax.textmate import DEFINED, FUNCTION, NAME, OPERATOR, UNIT_NAME, rules

Rule = tuple[str, Any]
Token = Any
"""A type of Pygments, which has no types of its own."""

_TOKENS = (
    ("comment", Comment.Single),
    ("string", String),
    ("constant.numeric", Number),
    (f"{OPERATOR}.logical", Operator.Word),
    (OPERATOR, Operator),
    ("storage.type", Keyword.Declaration),
    ("storage.modifier", Keyword.Type),
    ("keyword", Keyword),
    ("punctuation", Punctuation),
    (UNIT_NAME, Name.Class),
    (FUNCTION, Name.Function),
    (DEFINED, Name.Variable),
    (NAME, Name),
)
"""What a scope of the editors' grammar begins with, and the token; the first that fits counts."""

_BRACKETS = ("LBRACE", "RBRACE", "LPAR", "RPAR", "LSQB", "RSQB")
"""Terminals that editors colour by themselves."""


def _rules() -> Iterator[Rule]:
    yield r"\n", Whitespace
    for match, scopes in rules():
        kinds = {group: _token(scope) for group, scope in scopes.items()}
        yield match, kinds[0] if 0 in kinds else _groups(kinds)
    yield "|".join(terminals()[kind] for kind in _BRACKETS), Punctuation
    yield r"[ \t\f\r]+", Whitespace


def _token(scope: str) -> Token:
    return next(token for start, token in _TOKENS if scope.startswith(start))


def _groups(
    kinds: dict[int, Token],
) -> Callable[..., Iterator[tuple[int, Token, str]]]:
    """A callback of Pygments for a match: the groups with their tokens, blanks between them."""

    def pieces(
        lexer: DsfLexer, match: re.Match[str], context: object = None
    ) -> Iterator[tuple[int, Token, str]]:
        at = match.start()
        for group, token in kinds.items():
            if match.start(group) > at:
                yield at, Whitespace, match.string[at : match.start(group)]
            yield match.start(group), token, match[group]
            at = match.end(group)

    return pieces


class DsfLexer(RegexLexer):  # type: ignore[misc]  # it has no types
    """Specs of sequence mixers; what is no token of the language is an error."""

    name = "dsf"
    aliases: ClassVar[list[str]] = ["dsf"]
    filenames: ClassVar[list[str]] = ["*.dsf"]
    tokens: ClassVar[dict[str, list[Rule]]] = {"root": list(_rules())}
