"""Changes to a text: its canonical form, and what a diagnostic suggests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dsfc.diagnostics.report import Diagnostic
from dsfc.language_server.document import Document, document
from dsfc.source import Source, Span
from dsfc.syntax.format import format_spec
from dsfc.syntax.parse import parse

_WRITTEN = {"a space": " "}
"""What a diagnostic suggests in words, as it is written."""


@dataclass(frozen=True, slots=True)
class Edit:
    """A part of a text and what takes its place."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    """A repair of one mistake."""

    title: str
    edit: Edit
    diagnostic: Diagnostic


def formatted(document: Document) -> Edit | None:
    """Returns the change that gives a text its canonical form, as `dsfc fmt` writes it.

    None where it has that form already, and where it cannot be parsed.

    Raises:
        AssertionError: the form would be another spec.
    """
    if not document.parsed:
        return None
    form = format_spec(document.spec)
    if form == document.source.text:
        return None
    if parse(Source(document.source.name, form), document.library.limits) != document.spec:
        raise AssertionError("the canonical form is another spec")
    return Edit(document.source.span(), form)


def fixes(document: Document, start: int, end: int) -> tuple[Fix, ...]:
    """Returns the repairs for the mistakes that a range of a text touches.

    A repair writes what the message says was meant. It is offered only if the text then no longer
    has that mistake.
    """
    return tuple(_fixes(document, start, end))


def _fixes(document: Document, start: int, end: int) -> Iterator[Fix]:
    for diagnostic in document.diagnostics:
        span = diagnostic.span
        if diagnostic.nearest is None or span.source is not document.source or not span.text:
            continue
        if span.start <= end and start <= span.end:
            edit = Edit(span, _WRITTEN.get(diagnostic.nearest, diagnostic.nearest))
            if _repairs(document, diagnostic, edit):
                yield Fix(f"Write `{diagnostic.nearest}`", edit, diagnostic)


def _repairs(edited: Document, diagnostic: Diagnostic, edit: Edit) -> bool:
    """Whether the mistake is gone after the change, and no other has come to its place."""
    after = document(
        Source(edited.source.name, applied(edited.source.text, [edit])), edited.library
    )
    new = edit.span.start, edit.span.start + len(edit.text)
    return not any(
        d.span.source is after.source and d.span.start < new[1] and new[0] < max(d.span.end, 1)
        for d in after.diagnostics
        if d.code == diagnostic.code or d.code == "E-SYNTAX"
    )


def applied(text: str, edits: Iterable[Edit]) -> str:
    """Returns a text with changes made to it; they may not overlap."""
    for edit in sorted(edits, key=lambda e: e.span.start, reverse=True):
        text = text[: edit.span.start] + edit.text + text[edit.span.end :]
    return text
