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


def formatted(it: Document) -> Edit | None:
    """Returns the change that gives a text its canonical form, as `dsfc fmt` writes it.

    None where it has that form already, and where it cannot be parsed.

    Raises:
        AssertionError: the form would be another spec.
    """
    if not it.parsed:
        return None
    form = format_spec(it.spec)
    if form == it.source.text:
        return None
    if parse(Source(it.source.name, form), it.library.limits) != it.spec:
        raise AssertionError("the canonical form is another spec")
    return Edit(it.source.span(), form)


def fixes(it: Document, start: int, end: int) -> tuple[Fix, ...]:
    """Returns the repairs for the mistakes that a range of a text touches.

    A repair writes what the message says was meant. It is offered only if the text then no longer
    has that mistake.
    """
    return tuple(_fixes(it, start, end))


def _fixes(it: Document, start: int, end: int) -> Iterator[Fix]:
    for diagnostic in it.diagnostics:
        span = diagnostic.span
        if diagnostic.nearest is None or span.source is not it.source or not span.text:
            continue
        if span.start <= end and start <= span.end:
            edit = Edit(span, _WRITTEN.get(diagnostic.nearest, diagnostic.nearest))
            if _repairs(it, diagnostic, edit):
                yield Fix(f"Write `{diagnostic.nearest}`", edit, diagnostic)


def _repairs(it: Document, diagnostic: Diagnostic, edit: Edit) -> bool:
    """Whether the mistake is gone after the change, and no other has come to its place."""
    after = document(Source(it.source.name, applied(it.source.text, [edit])), it.library)
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
