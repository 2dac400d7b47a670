"""The axes of what a text defines, to be shown behind each name that does not declare them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dsfc.language_server.document import Document
from dsfc.mixer.ir import Mixer
from dsfc.mixer.render import described, shape
from dsfc.syntax import ast


@dataclass(frozen=True, slots=True)
class Hint:
    """A text to be shown at a place.

    Attributes:
        offset: the end of the name that it is about.
        text: a colon and the axes, `: h × n`; `: 1` for a value without axes.
        more: field and dependence on time too.
    """

    offset: int
    text: str
    more: str


def hints(document: Document, start: int, end: int) -> tuple[Hint, ...]:
    """Returns the axes of the definitions whose names end inside a range.

    Those of a mixer with a mistake are those that it had before, and of a base without output none
    are known. States and declared names say their axes themselves, and what the output does not
    reach is no part of a mixer.
    """
    return tuple(hint for hint in _hints(document) if start <= hint.offset <= end)


def _hints(document: Document) -> Iterator[Hint]:
    for piece in document.pieces:
        for unit in piece.spec.units:
            typed = document.typed.get(unit.name.text)
            if typed is not None and isinstance(unit, ast.MixerUnit):
                for name, text, more in _shapes(typed.mixer, unit):
                    yield Hint(piece.start + name.span.end, text, more)


def _shapes(mixer: Mixer, unit: ast.MixerUnit) -> Iterator[tuple[ast.Ident, str, str]]:
    for item in unit.items:
        if isinstance(item, ast.Def):
            definition = mixer.definition(item.name.text)
            if definition is not None:
                value = definition.value
                yield item.name, f": {shape(value.axes)}", described(value)
