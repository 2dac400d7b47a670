"""What may be written at a place: words that the grammar takes there, names in scope."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from dsfc.expr.distributions import DISTRIBUTIONS
from dsfc.expr.reserved_names import FIRST, TIME
from dsfc.expr.statements import PredicateName
from dsfc.expr.table import SPELLINGS
from dsfc.language_server.document import Document
from dsfc.language_server.hover import meaning
from dsfc.language_server.lookup import scope, unit_named
from dsfc.language_server.names import Kind
from dsfc.language_server.words import BACKSLASH
from dsfc.layer_parts import PARTS
from dsfc.mixer.library import Home
from dsfc.mixer.reserved_names import FORMS
from dsfc.mixer.words import MEANINGS
from dsfc.papers import Register
from dsfc.source import Source, Span
from dsfc.syntax import ast
from dsfc.syntax.expected import expected
from dsfc.syntax.format import format_header, format_item
from dsfc.syntax.grammar import reserved
from dsfc.syntax.letters import fold, is_legal, unfold
from dsfc.syntax.lex import KEYWORDS

_UNIT = re.compile(r"^[ \t]*(?:mixer|modifier)[ \t]+(\w+)", re.MULTILINE)
_NEW = re.compile(r"\b(?:mixer|modifier|const|dims|input|param|buffer|state|abstract)\b[^=:\n]*\Z")
_AFTER = re.compile(r"\b(extends|use|on|equivalent)\s+(?:\w+\s*,\s*)*\Z")
_CITED = re.compile(
    r'\bpaper\s+"[^"\n]*",\s*\d+,\s*"[^"\n]*"((?:,\s*\w+\s*"[^"\n]*")?(?:\s*"[^"\n]*")?),\s*\Z'
)
_LETTERS = re.compile(r',\s*letters\s+(?:\w+\s*"[^"\n]*",\s*)*\Z')
_LAYER = re.compile(r"\blayer\s+(?:[^\n;]*,\s*)?(?:(norm|gate)\s+)?\w*\Z")
_SHAPE = re.compile(r":[^=~\n]*\Z|->[^=~\n]*\Z")


class Sort(Enum):
    """What a completion is, for the editor's symbol beside it."""

    KEYWORD = "keyword"
    NAME = "name"
    AXIS = "axis"
    FUNCTION = "function"
    MIXER = "mixer"
    MODIFIER = "modifier"
    SIGN = "a letter or operator"


@dataclass(frozen=True, slots=True)
class Completion:
    """One thing that may be written.

    Attributes:
        label: what is written.
        sort: what it is.
        detail: its meaning or declaration, in one line.
        ascii: the label in ASCII, which editors match what was typed with.
    """

    label: str
    sort: Sort
    detail: str
    ascii: str


def word_at(source: Source, offset: int) -> Span:
    """Returns the part of a word that stands before an offset; empty where there is none.

    A backslash before it is a part of it.
    """
    start = offset
    while start > 0 and is_legal(source.text[start - 1]):
        start -= 1
    return source.span(start - source.text.endswith("\\", 0, start), offset)


def complete(document: Document, offset: int) -> tuple[Completion, ...]:
    """Returns what may be written at an offset, in place of the word begun there.

    Keywords are those that the grammar takes after what stands before in the same item. Names are
    those of the mixer and its bases, of the last text that could be parsed. Behind a backslash the
    letters and signs are offered by their names in LaTeX, in comments too.
    """
    source = document.source
    word = word_at(source, offset)
    if word.text.startswith("\\"):
        return tuple(_signs())
    start = word.start
    kinds = expected(source, start, document.library.limits)
    completions = [
        Completion(keyword, Sort.KEYWORD, MEANINGS.get(keyword, ""), keyword)
        for kind in sorted(kinds & KEYWORDS)
        for keyword in reserved(kind)
    ]
    if "NAME" in kinds:
        completions += _names(document, source.text[:start])
    return tuple(dict.fromkeys(completions))


def _signs() -> Iterator[Completion]:
    for name, sign in BACKSLASH.items():
        detail = MEANINGS.get(sign) or f"the letter of `{fold(sign)}`"
        yield Completion(sign, Sort.SIGN, detail, f"\\{name}")


def _names(document: Document, before: str) -> Iterator[Completion]:
    if _LETTERS.search(before):
        yield Completion(TIME, Sort.KEYWORD, meaning(TIME) or "", TIME)
        yield from _in_scope(document, before, axes_only=False)
        return
    if (cited := _CITED.search(before)) is not None:
        if not cited.group(1):
            yield from (Completion(r, Sort.KEYWORD, "keeps papers", r) for r in Register)
        yield Completion("letters", Sort.KEYWORD, "what the paper calls names", "letters")
        return
    line = before.rsplit("\n", 1)[-1]
    if (part := _LAYER.search(line)) is not None:
        words = PARTS if part.group(1) is None else PARTS[part.group(1)]
        yield from (Completion(w, Sort.KEYWORD, "of the layer around the mixer", w) for w in words)
        return
    after = _AFTER.search(line)
    word = None if after is None else after.group(1)
    if word in ("extends", "equivalent"):
        yield from _units(document, Kind.MIXER)
    elif word == "use":
        yield from _units(document, Kind.MODIFIER)
    elif not _NEW.search(line):  # else a name of the user's own
        axes_only = _SHAPE.search(line) is not None
        yield from _in_scope(document, before, axes_only)
        if line.strip() == "claim":
            yield from (
                Completion(predicate.value, Sort.KEYWORD, "predicate", predicate.value)
                for predicate in PredicateName
            )
        if word is None and not axes_only:
            yield from _language()


def _in_scope(document: Document, before: str, axes_only: bool) -> Iterator[Completion]:
    unit = _unit(document, before)
    for entry in () if unit is None else scope(document, unit).values():
        axis = isinstance(entry.item, ast.Dims)
        if axis or not axes_only:
            detail = "" if entry.item is None else format_item(entry.item)
            yield Completion(
                unfold(entry.name), Sort.AXIS if axis else Sort.NAME, detail, entry.name
            )


def _unit(document: Document, before: str) -> ast.Unit | None:
    """The unit of the last tree that has the name of the one that is being written."""
    headers = _UNIT.findall(before)
    if not headers:
        return None
    return next((u for u in document.spec.units if u.name.span.text == headers[-1]), None)


def _language() -> Iterator[Completion]:
    for name in (*SPELLINGS, *FORMS, *DISTRIBUTIONS):
        yield Completion(name, Sort.FUNCTION, meaning(name) or "", name)
    for name in (TIME, FIRST):
        yield Completion(name, Sort.KEYWORD, meaning(name) or "", name)


def _units(document: Document, kind: Kind) -> Iterator[Completion]:
    """The mixers or modifiers that can be named from the text."""
    home: Home = document.home
    sort = Sort.MIXER if kind is Kind.MIXER else Sort.MODIFIER
    for name in document.library.names(home):
        owner = unit_named(document, name, kind, home)
        if owner is not None:
            yield Completion(name, sort, format_header(owner.unit), name)
