"""The outline of a text: its mixers and modifiers, and the names that each introduces."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from dsfc.language_server.document import Document
from dsfc.language_server.pieces import Piece
from dsfc.source import Span
from dsfc.syntax import ast
from dsfc.syntax.format import format_header, format_item


class SymbolKind(Enum):
    """The kind of a line of the outline."""

    MIXER = "mixer"
    MODIFIER = "modifier"
    AXIS = "axis"
    INPUT = "input"
    PARAM = "param"
    BUFFER = "buffer"
    STATE = "state"
    ABSTRACT = "abstract"
    CONST = "const"
    DEFINITION = "definition"
    FUNCTION = "function"
    USE = "use"
    CLAIM = "claim"


@dataclass(frozen=True, slots=True)
class Symbol:
    """A line of the outline.

    Attributes:
        name: as the text spells it; of a claim, what it claims.
        kind: what it is.
        detail: its declaration or definition, in one line.
        span: all of it.
        place: its name, inside `span`.
        children: what stands in it.
    """

    name: str
    kind: SymbolKind
    detail: str
    span: Span
    place: Span
    children: tuple[Symbol, ...] = ()


def symbols(document: Document) -> tuple[Symbol, ...]:
    """Returns the outline in the order of the text; of a text with mistakes what can be read."""
    return tuple(
        _unit(document, piece, unit) for piece in document.pieces for unit in piece.spec.units
    )


def _unit(document: Document, piece: Piece, unit: ast.Unit) -> Symbol:
    kind = SymbolKind.MODIFIER if isinstance(unit, ast.ModifierUnit) else SymbolKind.MIXER
    children = tuple(_items(document, piece, unit))
    place = piece.place(document.source, unit.name.span)
    span = piece.place(document.source, unit.span)
    return Symbol(place.text, kind, format_header(unit), span, place, children)


def _items(document: Document, piece: Piece, unit: ast.Unit) -> Iterator[Symbol]:
    for item in unit.items:
        detail = format_item(item)
        span = piece.place(document.source, item.span)
        for kind, name in _names(item):
            place = piece.place(document.source, name)
            yield Symbol(" ".join(place.text.split()), kind, detail, span, place)


def _names(item: ast.Item) -> Iterator[tuple[SymbolKind, Span]]:
    """The names that an item introduces; of a claim what it claims."""
    match item:
        case ast.Dims():
            yield from ((SymbolKind.AXIS, dim.name.span) for dim in item.dims)
        case ast.Decl():
            yield from ((SymbolKind(item.kind.value), name.span) for name in item.names)
        case ast.Const():
            yield SymbolKind.CONST, item.name.span
        case ast.FunDef():
            yield SymbolKind.FUNCTION, item.name.span
        case ast.Def() | ast.Flow():
            yield SymbolKind.DEFINITION, item.name.span
        case ast.Use():
            yield SymbolKind.USE, item.modifier.span
        case ast.Claim():
            yield SymbolKind.CLAIM, item.relation.span
