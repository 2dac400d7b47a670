"""A text as the editor has it, read once: its tree, its typed mixers and its mistakes."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from dsfc.diagnostics.catalogue import NoOutput
from dsfc.diagnostics.report import Diagnostic, DiagnosticError, in_order
from dsfc.language_server.pieces import Piece, pieces
from dsfc.mixer.ir import Mixer
from dsfc.mixer.library import Home, Library
from dsfc.mixer.resolve import resolve
from dsfc.source import Source
from dsfc.syntax import ast
from dsfc.syntax.parse import IllegalCharacters, parse


@dataclass(frozen=True, slots=True)
class Typed:
    """A mixer that has no mistake, and the units of its text that it was made from."""

    units: tuple[ast.Unit, ...]
    mixer: Mixer


@dataclass(frozen=True, slots=True)
class Document:
    """A text at one moment.

    Attributes:
        source: the text, under the path of its file.
        spec: its tree; of the last text that could be parsed, where this one cannot.
        parsed: whether `spec` is the tree of this very text.
        diagnostics: mistakes of writing and typing, in the order of the text.
        typed: the mixers without a mistake, by name.
        library: where bases and modifiers are looked up.
    """

    source: Source
    spec: ast.Spec
    parsed: bool
    diagnostics: tuple[Diagnostic, ...]
    typed: Mapping[str, Typed] = field(repr=False)
    library: Library = field(repr=False)

    @property
    def home(self) -> Home:
        """The place that names of this text are looked up from."""
        return self.library.home(self.spec)

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """What can be read of this very text, whether it has mistakes or not."""
        if self.parsed:
            return (Piece(0, len(self.source.text), self.spec),)
        return pieces(self.source, self.library.limits)

    def unit_before(self, offset: int) -> ast.Unit | None:
        """Returns the mixer or modifier whose text begins last before an offset, None above all."""
        read = self.pieces
        for piece in reversed(read[: bisect_right(read, offset, key=lambda piece: piece.start)]):
            for unit in reversed(piece.spec.units):
                if piece.start + unit.span.start <= offset:
                    return unit
        return None

    @property
    def path(self) -> Path:
        """The file of the text."""
        return Path(self.source.name)


def document(source: Source, library: Library, before: Document | None = None) -> Document:
    """Reads a text, which is parsed once; mixers that did not change are not typed again.

    Args:
        source: the text, under the path of its file.
        library: where bases and modifiers are looked up; another one than that of `before` says
            that files beside the text may have changed.
        before: the same text a moment ago.
    """
    try:
        spec = parse(source, library.limits)
    except IllegalCharacters as e:
        guessed, problems = _typed(e.spec, library, {})
        return Document(source, e.spec, False, e.beside(problems), guessed, library)
    except DiagnosticError as e:
        known = _begun(source, library) if before is None else before.spec
        typed = {} if before is None else before.typed
        return Document(source, known, False, e.diagnostics, typed, library)
    known_typed = {} if before is None or before.library is not library else before.typed
    typed, problems = _typed(spec, library, known_typed)
    return Document(source, spec, True, in_order(problems), MappingProxyType(typed), library)


def _begun(source: Source, library: Library) -> ast.Spec:
    """The tree of what can be read of a text with mistakes: names to begin with."""
    read = pieces(source, library.limits)
    return ast.Spec(tuple(unit for piece in read for unit in piece.spec.units), (), source.span())


def _typed(
    spec: ast.Spec, library: Library, before: Mapping[str, Typed]
) -> tuple[dict[str, Typed], list[Diagnostic]]:
    """The mixers of a text, and what is wrong with the others."""
    typed: dict[str, Typed] = {}
    problems: list[Diagnostic] = []
    for unit in spec.units:
        name = unit.name.text
        if not isinstance(unit, ast.MixerUnit) or name in typed:
            continue
        units = tuple(_needed(spec, name))
        known = before.get(name)
        if known is not None and known.units == units:
            typed[name] = known
            continue
        try:
            typed[name] = Typed(units, resolve(spec, name, library))
        except DiagnosticError as e:
            # A base has no output, and that is no mistake.
            problems += (d for d in e.diagnostics if not isinstance(d, NoOutput))
    return typed, problems


def _needed(spec: ast.Spec, name: str) -> Iterator[ast.Unit]:
    """The units of a text that a mixer is made of: itself, its bases, their modifiers."""
    wanted, seen = [name], set()
    while wanted:
        word = wanted.pop()
        if word in seen:
            continue
        seen.add(word)
        for unit in spec.units:
            if unit.name.text == word:
                yield unit
                wanted += (i.modifier.text for i in unit.items if isinstance(i, ast.Use))
                if isinstance(unit, ast.MixerUnit) and unit.base is not None:
                    wanted.append(unit.base.text)
