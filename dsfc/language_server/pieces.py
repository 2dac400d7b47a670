"""The parts of a text that can be read although it has mistakes of writing, mixer by mixer.

A text is cut before each header. What cannot be parsed in a piece is left empty, so a mistake takes
its own line from the tree and nothing else; a brace that is missing takes none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise, takewhile

from dsfc.diagnostics.report import Diagnostic, DiagnosticError
from dsfc.limits import Limits
from dsfc.source import Source, Span
from dsfc.syntax import ast
from dsfc.syntax.grammar import reserved
from dsfc.syntax.lex import KEYWORDS
from dsfc.syntax.parse import IllegalCharacters, parse

_HEADER = re.compile(r"^[ \t]*(?:mixer|modifier)[ \t]+\w+", re.MULTILINE)
_HEAD = re.compile(r"[^\n{#\"]*(?:\"[^\"\n]*\"[^\n{#\"]*)?\{?")
_SHORT = re.compile(r"\s*(?:mixer\s+\w+|modifier\s+\w+\s+on\s+\w+)")
_KEYWORD = re.compile(rf"\s*({'|'.join(ast.DeclKind)})\b")
_MORE = re.compile(rf"(?!{_KEYWORD.pattern})[ \t]*(?=\w[^:=(\n]*:)")
"""Blanks before what goes on declaring, with the keyword of a line above."""
_JOINS = re.compile(r"[-+*/·.⊗×^<>≤≥=~,:]\s*(?:#.*)?$")
"""The end of a line that goes on in the next."""
_USUAL = "param"
"""The keyword of a line that goes on, where none can be read above it."""
_HIDDEN = re.compile(r'#[^\n]*|"[^"\n]*"')
_BRACES = re.compile(rf"({_HIDDEN.pattern})|[{{}}]")
_ROUNDS = 4
"""How often the lines with mistakes are left out before the whole body is."""
_TEXTS = 8
"""Texts that are remembered: an editor asks several things of each."""
_KNOWN = 256
"""Pieces that are remembered: a change leaves the others of a text as they are."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a text and its tree.

    Attributes:
        start: the offset of the part.
        end: the offset behind it.
        spec: its tree; spans count from `start`, and what was repaired may reach over `end`.
    """

    start: int
    end: int
    spec: ast.Spec

    def place(self, source: Source, span: Span) -> Span:
        """Returns a span of the tree as one of the text."""
        return source.span(self.start + span.start, min(self.start + span.end, self.end))


@lru_cache(maxsize=_TEXTS)
def pieces(source: Source, limits: Limits) -> tuple[Piece, ...]:
    """Returns the mixers and modifiers of a text, each as far as it can be read.

    Args:
        source: the text, with mistakes or without.
        limits: bounds on size; of a text beyond them nothing is read.
    """
    if len(source.text) > limits.bytes:
        return ()
    edges = [*(header.start() for header in _HEADER.finditer(source.text)), len(source.text)]
    return tuple(
        Piece(start, end, _read(source.text[start:end], limits)) for start, end in pairwise(edges)
    )


@lru_cache(maxsize=_KNOWN)
def _read(text: str, limits: Limits) -> ast.Spec:
    try:
        return parse(Source("<piece>", _closed(text)), limits)
    except IllegalCharacters as e:
        return e.spec
    except DiagnosticError:
        code = _one_body(text)
    for _ in range(_ROUNDS):
        try:
            return parse(Source("<piece>", code), limits)
        except IllegalCharacters as e:
            return e.spec
        except DiagnosticError as e:
            code = _without(code, e.diagnostics)
    return _bare(text, limits)


def _closed(text: str) -> str:
    """The text with the braces behind it that it lacks."""
    code = _HIDDEN.sub("", text)
    return f"{text}\n{'}' * (code.count('{') - code.count('}'))}"


def _one_body(text: str) -> str:
    """The text with the braces of one body: behind its header and at its end."""
    line, _, rest = text.partition("\n")
    head = _header(line)
    shown = head if head.endswith("{") else f"{head}{{"
    code = _BRACES.sub(lambda part: part[1] or " ", f"{line}\n{rest}"[len(shown) :])
    return f"{shown}{code}\n}}"


def _header(line: str) -> str:
    """The header that a line begins with, its brace too."""
    head = _HEAD.match(line)
    return "" if head is None else head.group()


def _without(text: str, mistakes: Iterable[Diagnostic]) -> str:
    """The text with the lines of mistakes left empty, but for its header and its last brace."""
    lines = text.split("\n")
    above_each = _going_on(lines)
    places = [(mistake.span.line - 1, mistake.span.column - 1) for mistake in mistakes]
    # What goes on declaring may be wrong for the lines above it alone: those come first.
    first = [place for place in places if place[0] not in above_each] or places
    wrong = set[int]().union(*(_wrong(lines, *place) for place in first))
    header = min((column for number, column in places if number == 0), default=len(lines[0]))
    for k in wrong & set(range(1, len(lines) - 1)):
        lines[k] = " " * len(lines[k])
    if 0 in wrong:
        lines[0] = _shortened(lines[0], header)
    _begin_again(lines, above_each)
    return "\n".join(lines)


def _wrong(lines: list[str], number: int, column: int) -> set[int]:
    """The lines of an item in which a mistake was found at a place.

    What is unfinished is found at a token behind it, which may stand in a later line: an item of
    its own is right then.
    """
    wrong = {number}
    above = _above(lines, number)
    own = _item().match(lines[number]) is not None
    if not own and not lines[number][:column].strip():
        wrong.add(above)
    elif own and _JOINS.search(lines[above]) and above != number:
        wrong = {above}
    while _JOINS.search(lines[above]) and above != number:
        wrong.add(above)
        number, above = above, _above(lines, above)
    return wrong | _rest(lines, max(wrong))


def _rest(lines: list[str], number: int) -> set[int]:
    """The lines below one that begin nothing, so that they are of its item."""
    below = range(number + 1, len(lines) - 1)
    return set(
        takewhile(
            lambda k: lines[k].strip() and not (_item().match(lines[k]) or _MORE.match(lines[k])),
            below,
        )
    )


@cache
def _item() -> re.Pattern[str]:
    """The beginning of an item: a keyword, or a name with what it is defined by."""
    words = "|".join(sorted(word for kind in KEYWORDS for word in reserved(kind)))
    return re.compile(rf"\s*(?:(?:{words})\b|\w+'?\s*(?:\([\w, ]*\)\s*)?=(?!=))")


def _above(lines: list[str], number: int) -> int:
    """The last line above that is not empty; the line itself where there is none."""
    return max((k for k in range(number) if lines[k].strip()), default=number)


def _shortened(line: str, column: int) -> str:
    """The first line up to its brace; without base and provenance, where the mistake is in them."""
    head, short = _header(line), _SHORT.match(line)
    if column < len(head) and short is not None:
        head = f"{short.group().ljust(len(head) - 1)}{{"
    return head.ljust(len(line))


def _going_on(lines: list[str]) -> dict[int, str]:
    """The lines that go on declaring, each with the keyword of the line above that began it."""
    keyword, above = _USUAL, {}
    for number, line in enumerate(lines):
        begun = _KEYWORD.match(line)
        if begun is not None:
            keyword = begun[1]
        elif _MORE.match(line):
            above[number] = keyword
    return above


def _begin_again(lines: list[str], above: dict[int, str]) -> None:
    """Writes the keyword before what goes on declaring, where the line with it is gone."""
    going_on: str | None = None
    for number, line in enumerate(lines):
        begun, more = _KEYWORD.match(line), _MORE.match(line)
        if begun is not None:
            going_on = begun[1]
        elif more is not None and number in above:
            word = f"{above[number]} "
            if going_on != above[number] and len(word) <= more.end():
                lines[number] = f"{word.rjust(more.end())}{line[more.end() :]}"
            going_on = above[number]
        elif line.strip():
            going_on = None


def _bare(text: str, limits: Limits) -> ast.Spec:
    """A unit of which nothing but the name can be read."""
    short = _SHORT.match(text)
    try:
        return parse(Source("<piece>", f"{'' if short is None else short.group()} {{\n}}"), limits)
    except DiagnosticError:
        return ast.Spec(())
