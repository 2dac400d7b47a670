"""Tells which of the common mistakes a text has.

Lark's `match_examples` idea: an example is parsed until the automaton stops, and another text that
stops in the same state at the same kind of token has the same mistake. The states are found once
and only when a text is wrong. Where the state does not tell two mistakes apart, `near` must
match the tokens before.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from lark import Token
from lark.exceptions import UnexpectedToken

from dsfc.diagnostics.report import Reporter
from dsfc.limits import DEFAULT_LIMITS
from dsfc.source import Source
from dsfc.syntax import grammar, lex
from dsfc.syntax.mistakes import MISTAKES, Mistake

BEHIND = 16
"""So many tokens before a stop are looked at."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the automaton stopped: its state, some tokens before, and the token it cannot take."""

    state: int
    before: Sequence[Token]
    token: Token


def recognise(place: Place) -> str | None:
    """What to say about a place, or None if it is no known mistake."""
    before = " ".join(str(token) for token in place.before)
    for mistake in _by_state().get((place.state, place.token.type), ()):
        here = not mistake.at or re.fullmatch(mistake.at, place.token) is not None
        if here and re.search(rf"(?:{mistake.near})\s*\Z", before):
            return mistake.label
    return None


@cache
def _by_state() -> dict[tuple[int, str], tuple[Mistake, ...]]:
    """The mistakes by where their examples stop, in the order of the table."""
    table: dict[tuple[int, str], tuple[Mistake, ...]] = {}
    for mistake in MISTAKES:
        for text in mistake.texts:
            place = stop(text)
            if place is not None:
                known = table.setdefault((place.state, place.token.type), ())
                if mistake not in known:
                    table[place.state, place.token.type] = (*known, mistake)
    return table


def stop(text: str) -> Place | None:
    """Where the automaton stops in a text, or None if it does not."""
    source, reporter = Source("<example>", text), Reporter()
    tokens = [*lex.read_tokens(source, DEFAULT_LIMITS, reporter), Token("$END", "")]
    automaton = grammar.automaton()
    for at, token in enumerate(tokens):
        try:
            automaton.feed_token(token)
        except UnexpectedToken:
            return Place(automaton.parser_state.position, tokens[max(0, at - BEHIND) : at], token)
    return None
