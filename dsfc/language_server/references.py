"""Every place that stands for one thing, in every text that shares it.

A mixer and those that extend it share their names: an override takes the place of what it
overrides. So a name is that of the first base which mentions it, and of all that extend that one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from dsfc.api.locate import SUFFIX
from dsfc.diagnostics.report import DiagnosticError
from dsfc.language_server.document import Document
from dsfc.language_server.lookup import Owner, chain, unit_named
from dsfc.language_server.names import Kind, Occurrence, occurrences
from dsfc.language_server.pieces import Piece
from dsfc.source import Span
from dsfc.syntax import ast
from dsfc.syntax.parse import parse
from dsfc.syntax.read import read_source


def references(
    document: Document, offset: int, open_texts: Iterable[ast.Spec] = (), introduced: bool = True
) -> tuple[Span, ...]:
    """Returns the places where what stands at an offset is mentioned.

    Of a word of the language they are those in this text. Texts with mistakes of writing are left
    out, but for this one, of which what can be read counts.

    Args:
        document: the text.
        offset: inside the name or just behind it.
        open_texts: texts that the editor has open and that stand for their files.
        introduced: whether declarations and definitions count.
    """
    asked = _Asked.of(document, open_texts)
    occurrence = asked.at(offset)
    if occurrence is None:
        return ()
    places = {
        (span.source.name, span.start): span
        for mentioned in _mentioned(asked.document, occurrence, asked.texts)
        if introduced or not mentioned.introduces
        for span in [asked.place(mentioned)]
    }
    return tuple(places[key] for key in sorted(places))


def texts_beside(document: Document) -> Iterator[ast.Spec]:
    """Yields the texts of the folder that can be parsed; none beside a text without a file."""
    if document.library.folder is None:
        return
    for file in sorted(document.path.parent.glob(f"*{SUFFIX}")):
        try:
            yield parse(read_source(file, limits=document.library.limits), document.library.limits)
        except DiagnosticError:
            continue  # nothing can be read out of it


def family(document: Document, occurrence: Occurrence) -> tuple[Owner, ...]:
    """Returns the units that share a name, nearest first; none where none introduces it."""
    owners = [
        (owner, mentions(owner.unit, occurrence.name)) for owner in chain(document, occurrence.unit)
    ]
    if not any(o.introduces for _, said in owners for o in said):
        return ()
    return tuple(owner for owner, said in owners if said)


def heirs(
    document: Document, root: ast.Unit, texts: Iterable[ast.Spec]
) -> Iterator[tuple[Document, ast.Unit]]:
    """Yields the units of some texts that are a unit or extend it, each with its text."""
    for spec in texts:
        there = replace(document, source=spec.span.source, spec=spec)
        for unit in spec.units:
            if any(owner.unit is root for owner in chain(there, unit)):
                yield there, unit


def mentions(unit: ast.Unit, name: str) -> tuple[Occurrence, ...]:
    """Returns where a unit speaks of a name that is not local to a definition."""
    mentioned = occurrences(ast.Spec((unit,)))
    return tuple(o for o in mentioned if o.name == name and o.kind is Kind.NAME)


@dataclass(frozen=True, slots=True)
class _Asked:
    """The texts that a question is about.

    Attributes:
        document: the text that it was asked in, as far as it can be read.
        texts: all of them, this one too.
        pieces: the piece of this text that a unit stands in, by its identity.
    """

    document: Document
    texts: tuple[ast.Spec, ...]
    pieces: Mapping[int, Piece]

    @classmethod
    def of(cls, document: Document, open_texts: Iterable[ast.Spec]) -> _Asked:
        pieces = {id(unit): piece for piece in document.pieces for unit in piece.spec.units}
        units = tuple(unit for piece in document.pieces for unit in piece.spec.units)
        own = document.spec if document.parsed else ast.Spec(units, (), document.source.span())
        all_texts = (*texts_beside(document), *open_texts, own)
        texts = {spec.span.source.name: spec for spec in all_texts}
        library = document.library.holding(texts.values())
        return cls(replace(document, spec=own, library=library), tuple(texts.values()), pieces)

    def at(self, offset: int) -> Occurrence | None:
        around = [
            (place.start, occurrence)
            for occurrence in occurrences(self.document.spec)
            for place in [self.place(occurrence)]
            if place.start <= offset <= place.end
        ]
        return max(around, key=lambda item: item[0], default=(0, None))[1]

    def place(self, occurrence: Occurrence) -> Span:
        piece = self.pieces.get(id(occurrence.unit))
        span = occurrence.span
        return span if piece is None else piece.place(self.document.source, span)


def _mentioned(
    document: Document, occurrence: Occurrence, texts: Collection[ast.Spec]
) -> Iterator[Occurrence]:
    match occurrence.kind:
        case Kind.LOCAL:
            for place in occurrences(ast.Spec((occurrence.unit,))):
                if place.kind is Kind.LOCAL and place.binder == occurrence.binder:
                    yield place
        case Kind.MIXER | Kind.MODIFIER:
            yield from _of_unit(document, occurrence, texts)
        case Kind.NAME if owners := family(document, occurrence):
            root = owners[-1].unit
            if not any(root is unit for spec in texts for unit in spec.units):
                yield from mentions(root, occurrence.name)
            for _, unit in heirs(document, root, texts):
                yield from mentions(unit, occurrence.name)
        case _:
            for place in occurrences(document.spec):
                if place.name == occurrence.name and place.kind is occurrence.kind:
                    yield place


def _of_unit(
    document: Document, occurrence: Occurrence, texts: Iterable[ast.Spec]
) -> Iterator[Occurrence]:
    """The places that speak of a mixer or modifier, and its header."""
    owner = unit_named(document, occurrence.name, occurrence.kind, document.home)
    if owner is None:
        return
    if not any(owner.unit is unit for spec in texts for unit in spec.units):
        yield next(iter(occurrences(ast.Spec((owner.unit,)))))
    for spec in texts:
        there = replace(document, source=spec.span.source, spec=spec)
        seen = unit_named(there, occurrence.name, occurrence.kind, there.home)
        if seen is not None and seen.unit is owner.unit:
            for place in occurrences(spec):
                if place.name == occurrence.name and place.kind is occurrence.kind:
                    yield place
