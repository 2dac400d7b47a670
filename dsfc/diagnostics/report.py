"""What a diagnostic is, and how several are collected in one run.

A diagnostic is a value of one of the classes in `dsfc.diagnostics.catalogue`. User errors travel as
`DiagnosticError`, which holds all that one run found; anything else that escapes is an internal
error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from enum import StrEnum
from typing import ClassVar

from dsfc.source import Span


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
    """A second place that matters, with what to see there."""

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

    def __str__(self) -> str:
        """`code: message`, without the place."""
        return f"{self.code}: {self.message}"


class DiagnosticError(Exception):
    """The run cannot go on; `diagnostics` says why, in the order of the text."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        """Keeps the diagnostics, sorted by place and without doubles."""
        self.diagnostics: tuple[Diagnostic, ...] = in_order(diagnostics)
        super().__init__("\n".join(f"{item.span}: {item}" for item in self.diagnostics))


def in_order(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """The diagnostics by source, place and code, each once."""
    once = dict.fromkeys(diagnostics)
    return tuple(
        sorted(once, key=lambda it: (it.span.source.name, it.span.start, it.span.end, it.code))
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
        """Those that keep the run from a result."""
        return tuple(item for item in self if item.severity is Severity.ERROR)

    @property
    def notes(self) -> tuple[Diagnostic, ...]:
        """Those that do not."""
        return tuple(item for item in self if item.severity is Severity.NOTE)

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
