"""What a diagnostic is, and how several are collected in one run.

A diagnostic is a value of one of the classes in `dsfc.diagnostics.catalogue`. User errors travel as
`DiagnosticError`, which holds all that one run found; anything else that escapes is an internal
error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from enum import StrEnum
from typing import ClassVar

from dsfc.source import NOWHERE, Span

_LISTED = 8
"""So many mixers of a text are named."""
_ELSEWHERE = 3
"""So many further places of a subject are shown."""


class Severity(StrEnum):
    """Whether the run can go on to a result."""

    ERROR = "error"
    NOTE = "note"


class Stage(StrEnum):
    """Earliest step that can report a code: parsing, `check`, `compile`, or the tool around."""

    PARSE = "parse"
    CHECK = "check"
    COMPILE = "compile"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class Label:
    """A second place that matters, with what to see there.

    Attributes:
        span: the place.
        text: what to see.
    """

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One problem at one place; its code's class adds the fields its message speaks of.

    Attributes:
        span: where the change is to be made.
        labels: other places that explain it.
        expected: what would be legal here, if that is more than the message says.
        found: what stands here.
        hint: a repair in words, longer than the message has room for.
        nearest: the legal spelling closest to what was written; becomes part of the message.
    """

    code: ClassVar[str]
    severity: ClassVar[Severity] = Severity.ERROR
    stage: ClassVar[Stage] = Stage.CHECK
    template: ClassVar[str]
    nearest_phrase: ClassVar[str] = "; did you mean `{}`?"

    span: Span
    labels: tuple[Label, ...] = field(default=(), kw_only=True)
    expected: str | None = field(default=None, kw_only=True)
    found: str | None = field(default=None, kw_only=True)
    hint: str | None = field(default=None, kw_only=True)
    nearest: str | None = field(default=None, kw_only=True)

    @property
    def message(self) -> str:
        """One line that says what to change."""
        text = self.template.format_map(
            {item.name: getattr(self, item.name) for item in fields(self)}
        )
        return text if self.nearest is None else text + self.nearest_phrase.format(self.nearest)

    @property
    def subject(self) -> str | None:
        """What is wrong wherever it stands, None for a problem of its place; it is told once."""
        return None

    def __str__(self) -> str:
        """`code: message`, without the place."""
        return f"{self.code}: {self.message}"


class DiagnosticError(Exception):
    """The run cannot go on; `diagnostics` says why, in the order of the text."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        """Keeps the diagnostics, sorted by place, each subject once.

        Args:
            diagnostics: one at least.
        """
        self.diagnostics: tuple[Diagnostic, ...] = in_order(diagnostics)
        super().__init__("\n".join(map(located, self.diagnostics)))


def located(diagnostic: Diagnostic) -> str:
    """`place: code: message`; of what stands nowhere, `code: message`."""
    placed = diagnostic.span != NOWHERE
    return f"{diagnostic.span}: {diagnostic}" if placed else str(diagnostic)


def in_order(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """The diagnostics by source, place and code, each once; a subject at its first place."""
    once = dict.fromkeys(diagnostics)
    unique: dict[object, Diagnostic] = {}
    again: dict[object, list[Label]] = {}
    for diagnostic in sorted(
        once,
        key=lambda diagnostic: (
            diagnostic.span.source.name,
            diagnostic.span.start,
            diagnostic.span.end,
            diagnostic.code,
        ),
    ):
        key = (
            diagnostic
            if diagnostic.subject is None
            else (diagnostic.code, diagnostic.span.source.name, diagnostic.subject)
        )
        if unique.setdefault(key, diagnostic).span != diagnostic.span:
            again.setdefault(key, []).append(Label(diagnostic.span, "here too"))
    return tuple(
        replace(diagnostic, labels=(*diagnostic.labels, *again[key][:_ELSEWHERE]))
        if key in again
        else diagnostic
        for key, diagnostic in unique.items()
    )


class Reporter:
    """Collects the diagnostics of one run."""

    def __init__(self) -> None:
        """Starts empty."""
        self._found: list[Diagnostic] = []

    def add(self, *diagnostics: Diagnostic) -> None:
        """Takes note of problems; the run goes on."""
        self._found.extend(diagnostics)

    def __iter__(self) -> Iterator[Diagnostic]:
        """All diagnostics so far, in the order of the text."""
        return iter(in_order(self._found))

    def __len__(self) -> int:
        """Number of diagnostics so far, doubles counted."""
        return len(self._found)

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """The diagnostics that keep the run from a result."""
        return tuple(item for item in self if item.severity is Severity.ERROR)

    def raise_errors(self) -> None:
        """Ends the run if there is an error; notes then travel along.

        Raises:
            DiagnosticError: with everything collected.
        """
        if self.errors:
            raise DiagnosticError(self._found)


def nearest(word: str, candidates: Iterable[str]) -> str | None:
    """The candidate closest to `word`, or None; ties go to the alphabetically first."""
    names = sorted(set(candidates) - {word})
    folded = [name for name in names if name.casefold() == word.casefold()]
    return next(iter(folded or get_close_matches(word, names, n=1, cutoff=0.6)), None)


def braces(names: Iterable[str]) -> str:
    """A set of axes as messages print it: `{h,n}`; the empty set is `{}`."""
    return "{" + ",".join(names) + "}"


def defined(names: tuple[str, ...]) -> str:
    """Returns what to say of the mixers of a text: the first of many, or how to write one."""
    if not names:
        return "write `mixer name { … }`"
    more = f", … ({len(names)})" if len(names) > _LISTED else ""
    return f"it defines: {', '.join(names[:_LISTED])}{more}"
