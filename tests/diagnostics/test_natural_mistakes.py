"""Mistakes of newcomers: the first line of the first message says how to mend the text."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from dsfc.api.check import Checked, checked
from dsfc.api.locate import Place
from dsfc.api.pipeline import SpecText
from dsfc.diagnostics.report import Diagnostic, DiagnosticError, Severity
from dsfc.source import Source
from dsfc.syntax.parse import IllegalCharacters, parse

CORPUS = tomllib.loads((Path(__file__).parent / "natural_mistakes.toml").read_text("utf-8"))
MIXERS: dict[str, str] = {name: mixer["text"] for name, mixer in CORPUS["mixers"].items()}
MISTAKES: list[dict[str, Any]] = CORPUS["mistake"]
ROUNDS = 3
"""So many repairs one after the other may mend a text."""


def wrong_text(mistake: dict[str, Any]) -> str:
    return MIXERS[mistake["mixer"]].replace(mistake["right"], mistake["wrong"], 1)


@cache
def findings(text: str) -> tuple[tuple[Diagnostic, ...], Checked | None]:
    """The output of `dsfc check` for a text."""
    place = Place(Path("mine.dsf"))
    try:
        found = checked(SpecText(place, parse(Source("mine.dsf", text))), "mine.dsf")
    except IllegalCharacters as error:
        found = checked(SpecText(place, error.spec), "mine.dsf")
        return error.beside(found.diagnostics), None
    except DiagnosticError as error:
        return error.diagnostics, None
    return found.diagnostics, found


def errors(text: str) -> list[Diagnostic]:
    return [d for d in findings(text)[0] if d.severity is Severity.ERROR]


def with_repairs(text: str, problems: Iterable[Diagnostic]) -> str:
    """The text with what each message says was meant."""
    edits = {
        span: d.nearest
        for d in problems
        if d.nearest is not None
        for span in (d.span, *(label.span for label in d.labels if label.text == "here too"))
    }
    for span in sorted(edits, key=lambda span: span.start, reverse=True):
        text = text[: span.start] + edits[span] + text[span.end :]
    return text


OFFERING = [m for m in MISTAKES if m.get("offers", False)]
NAMES = [f"{m['mixer']} {m['wrong']}" for m in MISTAKES]


@pytest.mark.parametrize("name", MIXERS)
def test_the_mixers_are_right(name: str) -> None:
    assert errors(MIXERS[name]) == []


@pytest.mark.share(4)
@pytest.mark.parametrize("mistake", MISTAKES, ids=NAMES)
def test_the_first_line_names_the_remedy_at_its_place(mistake: dict[str, Any]) -> None:
    problems, found = findings(wrong_text(mistake))
    if not problems:
        assert found is not None and mistake["code"] == mistake["at"] == ""
        assert found.mixers[0].refusal == mistake["first"]
    else:
        first = problems[0]
        assert (first.code, first.message) == (mistake["code"], mistake["first"])
        assert first.span.text == mistake["at"]
    assert mistake["says"] in mistake["first"]
    assert "\n" not in mistake["first"] and not mistake["first"].endswith((" ", ";", ","))


@pytest.mark.share(2)
@pytest.mark.parametrize("mistake", OFFERING, ids=lambda m: m["wrong"])
def test_what_messages_offer_mends_the_text(mistake: dict[str, Any]) -> None:
    text = wrong_text(mistake)
    assert all(problem.nearest is not None for problem in errors(text))
    for _ in range(ROUNDS):
        text = with_repairs(text, errors(text))
    assert errors(text) == []


def test_nearly_every_first_line_suffices() -> None:
    suffice = [m for m in MISTAKES if m.get("suffices", True)]
    assert len(MISTAKES) >= 270
    assert len(suffice) >= 0.95 * len(MISTAKES)
    assert len(OFFERING) >= 55
