"""The parser made from the grammar file, built once and only when a text is parsed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from types import MappingProxyType

from lark import Lark, Token
from lark.parsers.lalr_interactive_parser import InteractiveParser


def grammar_text() -> str:
    """Text of the grammar.

    Raises:
        RuntimeError: if the package is used from a checkout that is not installed.
    """
    try:
        return grammar_file("dsf.lark").read_text(encoding="utf-8")
    except (ModuleNotFoundError, FileNotFoundError) as error:
        raise RuntimeError(
            "the grammar is not beside the package; install it: pip install -e ."
        ) from error


def grammar_file(name: str) -> Traversable:
    """A file beside the grammar.

    Raises:
        ModuleNotFoundError: if the package is used from a checkout that is not installed.
    """
    return files("dsfc.grammar") / name


@cache
def _lark() -> Lark:
    # The basic lexer, not the contextual one: a keyword is a keyword everywhere, so `states = u` is
    # never read as `state s = u` and using a keyword as a name can be said in one message.
    return Lark(
        grammar_text(),
        parser="lalr",
        lexer="basic",
        propagate_positions=True,
        maybe_placeholders=False,
    )


@cache
def terminals() -> Mapping[str, str]:
    """Every named terminal with its regular expression, as the grammar file writes it."""
    return MappingProxyType(
        {terminal.name: terminal.pattern.to_regexp() for terminal in _lark().terminals}
    )


def reserved(kind: str) -> tuple[str, ...]:
    """The words that a type of token in `dsfc.syntax.lex.KEYWORDS` stands for."""
    # What must stand behind a word is no part of it.
    return tuple(re.findall(r"[a-z]{2,}", terminals()[kind].split("(?=")[0]))


def tokens(text: str) -> Iterator[Token]:
    """Tokens of a text whose characters are all legal.

    Raises:
        lark.UnexpectedCharacters: on any other text.
    """
    # Not Lark.lex, which makes a new lexer at each call.
    parser = _lark().parse_interactive(text)
    # Lark leaves it untyped.
    stream: Iterator[Token] = parser.lexer_thread.lex(parser.parser_state)  # type: ignore[no-untyped-call]
    return stream


def accepted(parser: InteractiveParser) -> set[str]:
    """Types of the tokens a parser can take next."""
    kinds: set[str] = parser.accepts()  # type: ignore[no-untyped-call]  # lark leaves it untyped
    return kinds


def automaton() -> InteractiveParser:
    """A parser in its start state, to be fed token by token."""
    return _lark().parse_interactive("")
