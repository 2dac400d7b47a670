"""Common mistakes, given by examples, each with what to say about it.

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

# The automaton is in another state at the first, the second and a later definition of a body.
_BEFORE = (
    "mixer a {\n ",
    "mixer a {",
    "mixer a {\n dims d\n ",
    "mixer a {\n dims d\n e = 1\n ",
    "modifier a on x {\n ",
)
_AFTER = "\n z = 1\n}\n"


@dataclass(frozen=True, slots=True)
class Mistake:
    """What to say, and wrong texts it is to be said about.

    Attributes:
        label: the message; it says what to write instead.
        items: wrong definitions, as they would stand in a mixer.
        units: wrong texts, whole.
        near: what the tokens before the stop, joined by blanks, must end with.
        at: what the token at the stop must be; any, if it is empty.
    """

    label: str
    items: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    near: str = ""
    at: str = ""

    @property
    def texts(self) -> tuple[str, ...]:
        """The examples as whole texts."""
        return (*(start + item + _AFTER for item in self.items for start in _BEFORE), *self.units)


@dataclass(frozen=True, slots=True)
class Place:
    """Where the automaton stopped: its state, some tokens before, and the token it cannot take."""

    state: int
    before: Sequence[Token]
    token: Token


MISTAKES: tuple[Mistake, ...] = (
    # Products
    Mistake(
        "the ASCII outer product is `(*)`; write `k (*) v` or `k ⊗ v`",
        ("y = k (x) v", "y = k[i-1] * k (x) v"),
        near=r"\( x \)",
    ),
    Mistake(
        "the outer product is `⊗` or `(*)`; `×` joins axes in shapes",
        ("y = k × v", "y = (k × v)", "y = k (×) v"),
    ),
    Mistake(
        "a sum needs parentheses: `sum[j ≤ i](…)`",
        ("y = sum[n] q", "y = Σ[j <= i] q[j]", "y = sum[n] 2"),
        near=r"\b(sum|mean|prod|Σ|Π|max) \[[^\]]*\]",
    ),
    Mistake(
        "a parenthesis cannot be applied; write `*` for a product",
        ("y = (q · k) v", "y = (q + k) 2", "y = (q)(k)", "y = (q + k)[i-1]"),
    ),
    Mistake(
        "a call cannot be applied; write `*` for a product",
        ("y = f(q) v", "y = f(q) 2", "y = f(q)(v)"),
    ),
    Mistake("a call cannot be indexed; define a name for it and index that", ("y = f(q)[i-1]",)),
    Mistake(
        "an indexed name cannot be applied; write `*` for a product",
        ("y = q[i-1] v", "y = q[i-1] 2"),
    ),
    Mistake(
        "a number cannot be applied; write `*` for a product",
        ("y = 2 v", "y = 2 (v + q)", "y = 2 f(v)"),
    ),
    Mistake("a name is applied to a name; write `*` for a product", ("y = v 2", "y = W v 2")),
    Mistake("a power is written `^`", ("y = q ** 2",), near=r"\*"),
    Mistake(
        "a number starts with a digit; write `0.5`",
        ("y = .5 * q", "y = 2 * .5", "y = q + .5", "y = f(.5)"),
    ),
    Mistake(
        "the arrow belongs to the type of a map; in an expression write `W u`", ("y = q -> v",)
    ),
    # Definitions
    Mistake(
        "a line may break after an operator, not before it; end the line above with it",
        ("y = q\n + v", "y = q\n * v", "y = q\n / v", "y = q\n ⊗ v", "y = q\n · v"),
        near=r"\n",
    ),
    Mistake("a definition has one `=`", ("y == q",)),
    Mistake("a definition is written with `=` alone", ("y := q", "y : = q"), near=r":"),
    Mistake("write the update out: `S = S[i-1] + …`", ("S += q", "S -= q", "S *= q", "S /= q")),
    Mistake("the left side is the bare name: `S = …` defines S at i", ("S[i] = q", "S[i-1] = q")),
    Mistake(
        "a definition is `name = …`, without a word before it",
        ("let x = q", "def y = q", "output y"),
    ),
    Mistake(
        "comparison is `==`",
        ("y = sum[j = i](q[j])", "y = f(a = 1)", "claim decay(S) = 1", "claim causal when a = 1"),
        near=r"[\[(][^\])\n;]*|\b(claim|when|and)\b[^\n;]*",
    ),
    Mistake(
        "the value after `=` is missing, or there is one `=` too many",
        ("y =", "y = ;", "y = q = v", "const P =", "param a =", "dims n ="),
    ),
    Mistake(
        "the last operand is missing",
        ("y = q + ;", "y = q * ;", "y = q ⊗ ;", "y = q · ;", "y = q ^ ;", "y = q / ;", "y = - ;"),
        (
            "mixer a { y = q + }",
            "mixer a { y = q * }",
            "mixer a { y = q ⊗ }",
            "mixer a { y = q · }",
            "mixer a { y = q ^ }",
            "mixer a { y = - }",
        ),
    ),
    Mistake(
        "two operators follow each other",
        ("y = q + * v", "y = q * + v", "y = + q", "y = (+ q)", "y = q ⊗ ⊗ v"),
    ),
    Mistake(
        "a definition has one value; separate definitions by `;` or a newline",
        ("y = q, v", "const a = 1, b = 2"),
    ),
    Mistake("definitions are separated by `;` or a newline", ("y = q x = v",), near=r"\w"),
    Mistake("one string of provenance is enough", ('y = q "a" "b"',)),
    Mistake(
        "a flow names its rule: `x' = … by zoh(Δ)`",
        ("x' = A * x", 'x\' = A * x "eq. 1"'),
        ("mixer a { x' = A * x }",),
    ),
    Mistake("the rule takes its step: `by zoh(Δ)`", ("x' = A * x by zoh",)),
    # Calls and indices
    Mistake("a call needs an argument", ("y = f()", "y = sum[n]()")),
    Mistake("an argument is missing after `,`", ("y = f(q, )", "f(a, ) = a", "y = x[n, ]")),
    Mistake("the brackets are empty", ("y = x[]", "y = sum[](q)")),
    Mistake(
        "a comparison stands in brackets and claims only",
        ("y = q < v", "y = (q < v)", "y = f(q < v)"),
    ),
    Mistake(
        "a function has plain names as arguments",
        ("f(2) = q", "f(a + b) = q", "f(q[j]) = q"),
        near=r"\([^)]*",
    ),
    # Declarations
    Mistake(
        "a bound is a flag: `param a : d unit` is in (0, 1); the others are `positive`, `nonneg`",
        ("param a : d in (0, 1)", "param a in (0, 1)", "param W : d -> n in (0, 1)"),
        at="in",
    ),
    Mistake(
        "axes are joined by `×` or `*`",
        ("param w : d, n", "param w : d n", "param W : d -> h x n", "param w : d x n"),
    ),
    Mistake(
        "axes are joined by `×` or `*`, without brackets",
        ("param w : (d, n)", "param w : [d, n]", "param w [d]"),
    ),
    Mistake(
        "the type follows a colon: `param w : d × n`",
        ("param w (d, n)", "param W d -> n", "param w d"),
    ),
    Mistake(
        "a declaration without axes has no colon: `param a positive`",
        ("param a : positive", "param a : unit = 1"),
    ),
    Mistake(
        "an axis is a name; give its size in `dims`",
        ("param w : 4", "param w : d × 4", "param W : d -> 4"),
    ),
    Mistake("axes are separated by commas: `dims d, n`", ("dims d n", "dims d × n")),
    Mistake("a flag stands after the type: `param a : d positive`", ("param positive a : d",)),
    Mistake(
        "the initialiser comes last, after the flags",
        ("param a = 1 positive", "param a : d = 0 complex"),
    ),
    Mistake("a type is written once", ("param a = 1 : d", "param a : d : n")),
    Mistake(
        "`use` says where: `use modifier on name`",
        ("use short_conv", "use short_conv(q)", "use short_conv, gate on q"),
    ),
    Mistake(
        'a paper is `paper "authors", year, "title", arXiv "number"  "equation"`',
        (
            "paper gla",
            "paper 2024",
            'paper "a"',
            'paper "a" 2024',
            'paper "a", "t"',
            'paper "a", 2024',
            'paper "a", 2024 "t"',
            'paper "a", 2024, t',
            'paper "a", 2024, "t", "2312.06635"',
            'paper "a", 2024, "t", 2312.06635',
            'paper "a", 2024, "t", arXiv 2312.06635',
            'paper "a", 2024, "t", arXiv: "2312.06635"',
            'paper "a", 2024, "t", arXiv "2312.06635", "eq. 1"',
        ),
    ),
    # Units
    Mistake(
        "the body stands in braces: `mixer name { … }`",
        units=(
            "mixer a\ny = q",
            "mixer a: y = q",
            "mixer a y = q",
            "mixer a = q",
            "mixer a(u) { }",
            "mixer a",
        ),
    ),
    Mistake(
        "the string of provenance stands before `extends`", units=('mixer a extends b "eq. 1" { }',)
    ),
    Mistake(
        "`extends` is followed by the name of a mixer",
        units=("mixer a extends { }", 'mixer a extends "b" { }'),
    ),
    Mistake(
        "a mixer extends one other",
        units=("mixer a extends b, c { }", "mixer a extends b extends c { }"),
    ),
    Mistake(
        "a modifier says what it calls its target: `modifier name on x { … }`",
        units=("modifier m { }", 'modifier m "s" { }'),
    ),
    Mistake(
        "a text consists of units; write `mixer name { … }`",
        units=(
            "y = q",
            "dims d",
            "param w : d",
            "const a = 1",
            "use m on q",
            "claim causal",
            "a { y = q }",
        ),
    ),
    Mistake("`}` closes nothing; remove it", units=("mixer a { y = q }\n}", "}")),
    Mistake(
        "braces cannot be nested; use parentheses in expressions",
        ("y = {q}", "{ y = q }", "y = q { }", "y = f({q})"),
    ),
)


def recognise(place: Place) -> str | None:
    """What to say about a place, or None if it is no known mistake."""
    before = " ".join(str(token) for token in place.before)
    for mistake in _by_state().get((place.state, place.token.type), ()):
        here = not mistake.at or mistake.at == place.token
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
            return Place(automaton.parser_state.position, tokens[max(0, at - 8) : at], token)
    return None


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
        kinds -= {"_CLAIM", "_DIMS", "_CONST", "_USE", "_PAPER", "DECL", "NAME"}
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
