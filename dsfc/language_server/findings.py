"""Diagnostics as an editor lists them: those of typing at once, those of `dsfc check` when it ends.

Both are read from what `dsfc check --format json` prints, so an editor and the command line say the
same of a text.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dsfc.diagnostics.render import as_dict
from dsfc.diagnostics.report import Diagnostic, Severity
from dsfc.source import Source, Span

CHECKED = "<stdin>"
"""What `dsfc check -` calls the text."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One diagnostic.

    Attributes:
        span: where, in the text itself.
        code: such as E-SHAPE-MUL; `dsfc explain` has its page.
        error: whether it is one, and no note.
        message: what to change; expectation, hint and places in other files in lines of their own.
        labels: other places of the text that explain it.
    """

    span: Span
    code: str
    error: bool
    message: str
    labels: tuple[tuple[Span, str], ...] = ()


def findings(source: Source, diagnostics: Iterable[Diagnostic]) -> tuple[Finding, ...]:
    """Returns diagnostics of a text as an editor lists them."""
    return tuple(_finding(source, as_dict(diagnostic), source.name) for diagnostic in diagnostics)


def findings_of_check(source: Source, printed: str) -> tuple[Finding, ...]:
    """Returns what `dsfc check --format json -` printed of a text.

    Raises:
        ValueError: that is not what was printed.
    """
    (item,) = json.loads(printed)["specs"]
    return tuple(_finding(source, entry, CHECKED) for entry in item["diagnostics"])


def _finding(source: Source, item: Mapping[str, Any], own: str) -> Finding:
    lines = [item["message"]]
    for key in ("expected", "found", "hint"):
        if item[key]:
            lines.append(f"{key}: {item[key]}")
    span = _span(source, item["span"], own)
    if span is None:
        lines.append(_elsewhere(item["span"]))
    labels = []
    for label in item["labels"]:
        place = _span(source, label["span"], own)
        if place is None:
            lines.append(f"{label['text']}: {_elsewhere(label['span'])}")
        else:
            labels.append((place, label["text"]))
    first = span or (labels[0][0] if labels else source.span(0, 0))
    error = item["severity"] == Severity.ERROR
    return Finding(first, item["code"], error, "\n".join(lines), tuple(labels))


def _span(source: Source, item: Mapping[str, Any], own: str) -> Span | None:
    """The place in the text; None where it is in another file."""
    if item["file"] != own:
        return None
    start, end = (_offset(source, item[edge]) for edge in ("start", "end"))
    return source.span(start, end)


def _offset(source: Source, point: Mapping[str, int]) -> int:
    return source.line_starts[point["line"] - 1] + point["column"] - 1


def _elsewhere(item: Mapping[str, Any]) -> str:
    return f"{item['file']}:{item['start']['line']}:{item['start']['column']}"
