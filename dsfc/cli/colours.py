"""Colours of verdicts and titles, the same in all commands; click drops them outside terminals."""

from __future__ import annotations

import re

import click

_COLOURS = {
    **dict.fromkeys(("proved", "accepted", "ok", "kept"), "green"),
    **dict.fromkeys(("refuted", "wrong", "not kept", "rejected"), "red"),
    **dict.fromkeys(("unknown", "not decided"), "yellow"),
}
_WORDS = "|".join(sorted(_COLOURS, key=len, reverse=True))
_VERDICT = re.compile(rf"( {{0,2}}(?:[^\s:][^:\n]*: |[a-z]+ +)?)({_WORDS})\b")


def coloured(report: str) -> str:
    """Returns a report with the verdict of each line that states one in its colour.

    A verdict stands first on its line, behind a colon, or behind one word and blanks; lines that
    are indented further are left as they are.
    """
    return "".join(map(_line, report.splitlines(keepends=True)))


def heading(text: str) -> str:
    """Returns a title in bold letters."""
    return click.style(text, bold=True)


def code(text: str) -> str:
    """Returns what is to be typed, in the colour of code."""
    return click.style(text, fg="cyan")


def _line(line: str) -> str:
    verdict = _VERDICT.match(line)
    if verdict is None:
        return line
    lead, word = verdict.groups()
    return f"{lead}{click.style(word, fg=_COLOURS[word])}{line[verdict.end() :]}"
