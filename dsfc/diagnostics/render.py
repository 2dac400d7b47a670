"""Diagnostics as terminal text and as JSON."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable
from typing import Any

from dsfc.diagnostics.report import Diagnostic, Severity
from dsfc.source import NOWHERE, Span

_RED, _CYAN, _BLUE, _BOLD, _OFF = "\x1b[31m", "\x1b[36m", "\x1b[34m", "\x1b[1m", "\x1b[0m"
_CLIP = 110  # columns of a source line shown; longer lines are cut around the span
_TAB = 4


def render(diagnostic: Diagnostic, *, colour: bool = False) -> str:
    """Text of one diagnostic for a terminal: message, place, source line, underlined span, help.

    Args:
        diagnostic: what to show.
        colour: whether to add ANSI colours; never guessed from the environment.
    """
    mark = _RED if diagnostic.severity is Severity.ERROR else _CYAN
    paint = _Paint(colour)
    head = paint(_BOLD + mark, f"{diagnostic.severity}[{diagnostic.code}]")
    lines = [f"{head}{paint(_BOLD, ': ' + printable(diagnostic.message))}"]
    lines += _excerpt(diagnostic.span, "", "^", mark, paint)
    for label in diagnostic.labels:
        lines += _excerpt(label.span, printable(label.text), "-", _BLUE, paint)
    notes = {"expected": diagnostic.expected, "found": diagnostic.found, "help": diagnostic.hint}
    lines += [
        f"  {paint(_BLUE, '=')} {name}: {printable(text)}" for name, text in notes.items() if text
    ]
    return "\n".join(lines)


def render_all(diagnostics: Iterable[Diagnostic], *, colour: bool = False) -> str:
    """Text of several diagnostics, a blank line between them, and how many errors there are."""
    listed = tuple(diagnostics)
    errors = sum(item.severity is Severity.ERROR for item in listed)
    parts = [render(item, colour=colour) for item in listed]
    if errors:
        parts.append(f"{errors} error{'s' if errors > 1 else ''}")
    return "\n\n".join(parts)


def render_short(diagnostic: Diagnostic) -> str:
    """One line: place, severity, code and message, as compilers print them.

    `dsfc` stands in front of what has no place, as the name of a compiler does.
    """
    place = "dsfc" if diagnostic.span == NOWHERE else diagnostic.span
    return printable(f"{place}: {diagnostic.severity}: {diagnostic}")


def to_json(diagnostics: Iterable[Diagnostic]) -> str:
    """JSON array of diagnostics; lines and columns (code points) from 1, bytes from 0."""
    return json.dumps([as_dict(item) for item in diagnostics], ensure_ascii=False, indent=2)


def as_dict(diagnostic: Diagnostic) -> dict[str, Any]:
    """One diagnostic as plain values; keys are always all present."""
    return {
        "code": diagnostic.code,
        "severity": str(diagnostic.severity),
        "message": diagnostic.message,
        "span": _span_dict(diagnostic.span),
        "labels": [
            {"span": _span_dict(label.span), "text": label.text} for label in diagnostic.labels
        ],
        "expected": diagnostic.expected,
        "found": diagnostic.found,
        "hint": diagnostic.hint,
        "nearest": diagnostic.nearest,
    }


def printable(text: str) -> str:
    """`text` with invisible characters escaped, so that a spec cannot steer a terminal."""
    return "".join(char if char.isprintable() else f"\\u{{{ord(char):x}}}" for char in text)


class _Paint:
    """Wraps text in a colour, if colours are on."""

    def __init__(self, on: bool) -> None:
        self.on = on

    def __call__(self, style: str, text: str) -> str:
        return f"{style}{text}{_OFF}" if self.on else text


def _excerpt(span: Span, text: str, underline: str, style: str, paint: _Paint) -> list[str]:
    """Place, source line and underline of a span; a span of several lines is shown by its first."""
    if span == NOWHERE:
        return []
    if not span.source.text:
        return [f"  {paint(_BLUE, '-->')} {printable(span.source.name)}"]
    line = span.source.line(span.line)
    first = span.column - 1
    last = min(first + max(span.end - span.start, 1), max(len(line), first + 1))
    begin = max(0, min(first - _CLIP // 3, len(line) - _CLIP))
    before, _ = _shown(line[begin:first])
    shown, _ = _shown(line[begin : begin + _CLIP])
    lead = "…" if begin else ""
    tail = "…" if begin + _CLIP < len(line) else ""
    width = max(1, _shown(line[first : min(last, begin + _CLIP)])[1])
    margin = " " * len(str(span.line))
    bar = paint(_BLUE, "|")
    marks = paint(style, underline * width + (f" {text}" if text else ""))
    return [
        f"{margin} {paint(_BLUE, '-->')} {printable(str(span))}",
        f"{margin} {bar}",
        f"{paint(_BLUE, str(span.line))} {bar} {lead}{shown}{tail}".rstrip(),
        f"{margin} {bar} {' ' * (len(lead) + _width(before))}{marks}",
    ]


def _shown(text: str) -> tuple[str, int]:
    """`text` as a terminal can show it, with its width in columns."""
    shown = "".join(
        " " * _TAB if char == "\t" else char if char.isprintable() else "\ufffd" for char in text
    )
    return shown, _width(shown)


def _width(text: str) -> int:
    """Terminal columns of a text: wide characters take two, combining ones none."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in text
    )


def _span_dict(span: Span) -> dict[str, Any]:
    """Both ends of a span in every counting an editor may use."""
    return {
        "file": span.source.name,
        "start": _point(span, span.start),
        "end": _point(span, span.end),
    }


def _point(span: Span, offset: int) -> dict[str, int]:
    line, column = span.source.position(offset)
    return {"line": line, "column": column, "byte": span.source.byte_offset(offset)}
