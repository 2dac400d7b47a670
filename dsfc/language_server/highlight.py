"""The kind of every word of a text, for editors that colour by meaning.

Keywords, operators and numbers are the tokens of the parser, so they are known in a text with
mistakes too. What a name stands for says the mixer around it, as far as that can be read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache

from dsfc.diagnostics.report import DiagnosticError, Reporter
from dsfc.expr.reserved_names import FIRST, TIME
from dsfc.language_server.document import Document
from dsfc.language_server.hover import meaning
from dsfc.language_server.lookup import scope
from dsfc.language_server.names import Kind, Occurrence, occurrences
from dsfc.source import Span
from dsfc.syntax import ast
from dsfc.syntax.letters import fold
from dsfc.syntax.lex import comments, legal_tokens
from dsfc.syntax.textmate import OPERATOR, SCOPES, UNITS


class Role(Enum):
    """The kind of a word; the value is the protocol's word for it."""

    COMMENT = "comment"
    STRING = "string"
    NUMBER = "number"
    OPERATOR = "operator"
    KEYWORD = "keyword"
    MIXER = "class"
    MODIFIER = "interface"
    AXIS = "typeParameter"
    LOCAL = "parameter"
    HELD = "property"
    VALUE = "variable"
    FUNCTION = "function"


class Mark(Enum):
    """A modifier of a word; the value is the protocol's word for it."""

    INTRODUCED = "definition"
    FIXED = "readonly"
    STATE = "modification"
    LANGUAGE = "defaultLibrary"


@dataclass(frozen=True, slots=True)
class Highlight:
    """A word with what it is: inputs, constants and buffers are fixed, states change."""

    span: Span
    role: Role
    marks: frozenset[Mark] = frozenset()


_SCOPES = (
    (OPERATOR, Role.OPERATOR),
    ("keyword", Role.KEYWORD),
    ("storage", Role.KEYWORD),
    ("string", Role.STRING),
    ("constant", Role.NUMBER),
)
"""What the scope of a token in the editors' grammar begins with; the first that fits counts."""

_DECLARED: Mapping[ast.DeclKind, tuple[Role, frozenset[Mark]]] = {
    ast.DeclKind.INPUT: (Role.VALUE, frozenset({Mark.FIXED})),
    ast.DeclKind.PARAM: (Role.HELD, frozenset()),
    ast.DeclKind.BUFFER: (Role.HELD, frozenset({Mark.FIXED})),
    ast.DeclKind.STATE: (Role.VALUE, frozenset({Mark.STATE})),
    ast.DeclKind.ABSTRACT: (Role.FUNCTION, frozenset()),
}

_KINDS = {
    Kind.LOCAL: Role.LOCAL,
    Kind.MIXER: Role.MIXER,
    Kind.MODIFIER: Role.MODIFIER,
    Kind.WORD: Role.KEYWORD,
}

_WORD = frozenset({Mark.LANGUAGE})


def highlight(document: Document) -> tuple[Highlight, ...]:
    """Returns the words of a text in its order, none of them over a line's end.

    Punctuation and characters that the language does not know have no role. A text beyond the
    limits of a spec has no words.
    """
    source = document.source
    limits = replace(document.library.limits, diagnostics=len(source.text) + 1)
    if len(source.text) > limits.bytes:
        return ()
    try:
        tokens = legal_tokens(source, limits, Reporter())
    except DiagnosticError:
        return ()
    names = _Names(document)
    words = [
        Highlight(
            source.span(comment.span.start, comment.span.start + len(comment.text)), Role.COMMENT
        )
        for comment in comments(source)
    ]
    for token in tokens:
        place = source.span(token.start_pos or 0, token.end_pos or 0)
        if place.text != token:  # what stands there is read as what is near
            continue
        if token.type == "NAME":
            words.append(names.at(place))
        elif (role := _role_of_token(token.type)) is not None:
            words.append(Highlight(place, role))
    return tuple(sorted(words, key=lambda word: word.span.start))


@cache
def _role_of_token(kind: str) -> Role | None:
    scope = (SCOPES | UNITS).get(kind, "")
    return next((role for start, role in _SCOPES if scope.startswith(start)), None)


class _Names:
    """What the names of a text stand for."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._known = dict(self._exactly())
        self._scopes: dict[int, dict[str, Occurrence]] = {}

    def at(self, place: Span) -> Highlight:
        """A name; on a line that cannot be read what it stands for in the mixer around it."""
        occurrence = self._known.get(place.start)
        if occurrence is not None and occurrence.kind is not Kind.NAME:
            return Highlight(place, _KINDS[occurrence.kind], _marks(occurrence))
        unit = self._document.unit_before(place.start) if occurrence is None else occurrence.unit
        name = fold(place.text)
        introduced = None if unit is None else self._scope(unit).get(name)
        if introduced is not None:
            role, marks = _role_of_name(introduced)
            return Highlight(place, role, marks | _marks(occurrence))
        if name in (TIME, FIRST):
            return Highlight(place, Role.KEYWORD)
        if meaning(name) is not None:
            return Highlight(place, Role.FUNCTION, _WORD)
        return Highlight(place, Role.VALUE, _marks(occurrence))

    def _exactly(self) -> Iterator[tuple[int, Occurrence]]:
        for piece in self._document.pieces:
            for occurrence in occurrences(piece.spec):
                yield piece.start + occurrence.span.start, occurrence

    def _scope(self, unit: ast.Unit) -> dict[str, Occurrence]:
        if id(unit) not in self._scopes:
            self._scopes[id(unit)] = scope(self._document, unit)
        return self._scopes[id(unit)]


def _marks(occurrence: Occurrence | None) -> frozenset[Mark]:
    introduces = occurrence is not None and occurrence.introduces
    return frozenset({Mark.INTRODUCED}) if introduces else frozenset()


def _role_of_name(introduced: Occurrence) -> tuple[Role, frozenset[Mark]]:
    match introduced.item:
        case ast.Dims():
            return Role.AXIS, frozenset()
        case ast.Decl(kind=kind):
            return _DECLARED[kind]
        case ast.Const():
            return Role.VALUE, frozenset({Mark.FIXED})
        case ast.FunDef():
            return Role.FUNCTION, frozenset()
        case ast.Flow():
            return _DECLARED[ast.DeclKind.STATE]
    return Role.VALUE, frozenset()
