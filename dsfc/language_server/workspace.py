"""The texts that an editor has open, and what each sees of the others."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dsfc.language_server.document import Document, document
from dsfc.mixer.library import Library
from dsfc.source import Source
from dsfc.syntax import ast


@dataclass(slots=True)
class _Open:
    """An open text.

    Attributes:
        document: as it was last read.
        stale: whether files that it may look names up in have changed since.
    """

    document: Document
    stale: bool = False


class Workspace:
    """Open texts by the name of their file; a name without folder is a text without a file."""

    def __init__(self) -> None:
        """Starts with none."""
        self._open: dict[str, _Open] = {}

    def change(self, name: str, text: str) -> Document:
        """Takes the new text of a file, open before or not, and returns it read."""
        known = self._open.get(name)
        source = Source(name, text)
        if known is None or known.stale:
            before = None if known is None else known.document
            read = document(source, self._library(name), before)
        else:
            read = document(source, known.document.library, known.document)
        self._open[name] = _Open(read)
        for other, opened in self._open.items():
            opened.stale |= other != name
        return read

    def close(self, name: str) -> None:
        """Forgets a text; from now on its file counts."""
        self._open.pop(name, None)
        self.refresh()

    def refresh(self) -> None:
        """Takes note that files have changed."""
        for opened in self._open.values():
            opened.stale = True

    def get(self, name: str) -> Document | None:
        """Returns an open text with what it sees of others up to date, None if it is not open."""
        known = self._open.get(name)
        if known is not None and known.stale:
            source = known.document.source
            read = document(source, self._library(name), known.document)
            known = self._open[name] = _Open(read)
        return None if known is None else known.document

    def names(self) -> tuple[str, ...]:
        """Returns the names of the open texts."""
        return tuple(self._open)

    def specs(self) -> tuple[ast.Spec, ...]:
        """Returns the trees of the open texts that can be parsed as they are."""
        return tuple(
            opened.document.spec for opened in self._open.values() if opened.document.parsed
        )

    def _library(self, name: str) -> Library:
        """Where names of a text are looked up: open texts stand for their files."""
        folder = Path(name).parent
        others = (spec for spec in self.specs() if spec.span.source.name != name)
        return Library(folder=folder if folder.is_absolute() else None).holding(others)
