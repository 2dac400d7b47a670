"""Where names come from: the unit itself, its bases, other files, the language."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dsfc.diagnostics.report import DiagnosticError
from dsfc.language_server.document import Document
from dsfc.language_server.names import (
    Kind,
    Occurrence,
    items_introducing,
    occurrence_at,
    occurrences,
)
from dsfc.mixer.library import Home
from dsfc.source import Span
from dsfc.syntax import ast


@dataclass(frozen=True, slots=True)
class Owner:
    """A unit with the place its names are looked up from."""

    unit: ast.Unit
    home: Home


def definitions(document: Document, offset: int) -> tuple[Span, ...]:
    """Returns where the name at an offset is declared or defined, its own text or another.

    A state has two places, its declaration first. Nothing is known of what is no name, of words of
    the language, and while the text cannot be parsed.
    """
    occurrence = occurrence_at(document.spec, offset) if document.parsed else None
    return () if occurrence is None else origins(document, occurrence)


def origins(document: Document, occurrence: Occurrence) -> tuple[Span, ...]:
    """Returns where a name comes from."""
    match occurrence.kind:
        case Kind.LOCAL:
            return () if occurrence.binder is None else (occurrence.binder,)
        case Kind.MIXER | Kind.MODIFIER:
            owner = unit_named(document, occurrence.name, occurrence.kind, document.home)
            return () if owner is None else (owner.unit.name.span,)
        case Kind.NAME:
            return tuple(introduction.span for introduction in introductions(document, occurrence))
    return ()


def introductions(document: Document, occurrence: Occurrence) -> tuple[Occurrence, ...]:
    """Returns the declaration and definition of a name: of the nearest unit that has any."""
    for owner in chain(document, occurrence.unit):
        items = items_introducing(owner.unit, occurrence.name)
        if items:
            return items
    return ()


def chain(document: Document, unit: ast.Unit) -> Iterator[Owner]:
    """Yields a unit and the mixers it extends, nearest first; what cannot be found ends it."""
    owner: Owner | None = Owner(unit, document.home)
    seen: list[ast.Unit] = []
    while owner is not None and len(seen) <= document.library.limits.extends_depth:
        if any(owner.unit is before for before in seen):
            return
        yield owner
        seen.append(owner.unit)
        base = owner.unit.base if isinstance(owner.unit, ast.MixerUnit) else None
        owner = None if base is None else unit_named(document, base.text, Kind.MIXER, owner.home)


def unit_named(document: Document, name: str, kind: Kind, home: Home) -> Owner | None:
    """Returns the mixer or modifier of a name as seen from a place; None also if it is broken."""
    library = document.library
    look = library.modifier if kind is Kind.MODIFIER else library.mixer
    try:
        unit = look(name, home)
    except DiagnosticError:
        return None
    return None if unit is None else Owner(unit.unit, unit.home)


def scope(document: Document, unit: ast.Unit) -> dict[str, Occurrence]:
    """Returns the names that may be read in a unit, each with the nearest place that gives it."""
    names: dict[str, Occurrence] = {}
    for owner in chain(document, unit):
        own = occurrences(ast.Spec((owner.unit,)))
        for name in own:
            if name.introduces and name.kind is Kind.NAME:
                names.setdefault(name.name, name)
    return names
