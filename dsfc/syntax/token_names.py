"""Tokens as messages name them."""

from __future__ import annotations

from collections.abc import Iterable

from lark import Token

from dsfc.diagnostics.report import nearest
from dsfc.syntax import lex

STARTERS = frozenset({"_DIMS", "DECL", "_CONST", "_USE", "_CLAIM", "_PAPER", "LAYER"})
"""Types of the reserved words that a line of a body starts with."""
_WORDS: dict[str, tuple[str, ...]] = {
    "DECL": ("input", "param", "buffer", "state", "abstract"),
    "LAYER": ("layer",),
    "FLAG": ("complex", "positive", "nonneg", "unit", "nonzero", "backward"),
    **{
        f"_{word.upper()}": (word,)
        for word in ("dims", "const", "use", "claim", "extends", "paper")
    },
}
_OTHERS = {"parameter": "param", "parameters": "param", "weight": "param", "weights": "param"}
_MEANT_OTHERWISE = frozenset({"in", "init", "output", "outputs", "out", "var", "let", "yield"})
_SHORTEST = 3
"""A beginning of a word is taken for the word from so many letters on."""

_READABLE = {
    "NAME": "a name",
    "NUMBER": "a number",
    "STRING": "a string",
    "EQUAL": "`=`",
    "TILDE": "`~`",
    "ARROW": "`->`",
    "CROSS": "`×`",
    "OUTER": "`⊗`",
    "DOT": "`·`",
    "STAR": "`*`",
    "SLASH": "`/`",
    "PLUS": "`+`",
    "MINUS": "`-`",
    "CMP": "a comparison",
    "CIRCUMFLEX": "`^`",
    "QUOTE": "`'`",
    "COMMA": "`,`",
    "COLON": "`:`",
    "LPAR": "`(`",
    "RPAR": "`)`",
    "LSQB": "`[`",
    "RSQB": "`]`",
    "LBRACE": "`{`",
    "RBRACE": "`}`",
    "DECL": "a declaration",
    "FLAG": "a flag",
    "HEADS": "`heads`",
    "LAYER": "`layer`",
    "EACH": "`each`",
    lex.SEPARATOR: "the end of the line",
    "$END": "the end of the text",
}
_OPERATORS = frozenset("OUTER DOT STAR SLASH PLUS MINUS CIRCUMFLEX".split())


def name_of(token: Token) -> str:
    """A token as messages name it."""
    if token.type in (lex.SEPARATOR, "$END"):
        return "`;`" if ";" in token else _READABLE[token.type]
    return f"`{token}`"


def expectation(accepted: set[str]) -> str:
    """What may stand at a place, shortened: `a name, a number or "("`."""
    kinds = set(accepted)
    words = []
    if {"_CLAIM", "_DIMS", "DECL"} <= kinds:
        kinds -= {"_CLAIM", "_DIMS", "_CONST", "_USE", "_PAPER", "LAYER", "DECL", "NAME"}
        words.append("a definition or declaration")
    elif len(_OPERATORS & kinds) > 2:
        kinds -= _OPERATORS
        words.append("an operator")
    elif "NAME" in kinds and "MINUS" in kinds:
        kinds -= {"NUMBER", "MINUS", "LPAR", "NAME"}
        words.append("an expression")
    words += sorted(_READABLE.get(kind, f"`{kind.strip('_').lower()}`") for kind in kinds)
    *most, last = words or ["nothing"]
    return f"{', '.join(most)} or {last}" if most else last


def near_word(name: str, accepted: Iterable[str]) -> str | None:
    """The reserved word that a name is meant as, among those of some types of tokens.

    Args:
        name: what is written.
        accepted: types of tokens.
    """
    words = [word for kind in accepted for word in _WORDS.get(kind, ())]
    if name in _MEANT_OTHERWISE:
        return None
    if _OTHERS.get(name) in words:
        return _OTHERS[name]
    begun = [word for word in words if len(name) >= _SHORTEST and word.startswith(name.lower())]
    return min(begun, default=None) or nearest(name, words)
