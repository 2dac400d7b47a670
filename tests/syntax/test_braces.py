"""Braces inside definitions are one mistake each, and the rest of the text is read."""

from __future__ import annotations

import pytest

from dsfc.diagnostics.report import Diagnostic, DiagnosticError
from dsfc.source import Source
from dsfc.syntax.parse import parse


def problems(text: str) -> list[Diagnostic]:
    try:
        parse(Source("a.dsf", text))
    except DiagnosticError as error:
        return list(error.diagnostics)
    return []


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("S_{t-1}", "S[i-1]"),
        ("S_{i - 1}", "S[i - 1]"),
        ("sum_{j ≤ i}", "sum[j ≤ i]"),
        ("{i-j}", "(i-j)"),
        ("{a, b}", "(a, b)"),
    ],
)
def test_a_pair_is_reported_with_what_it_means(written: str, meant: str) -> None:
    before = {"{i-j}": "c^", "{a, b}": "max"}.get(written, "")
    after = "(v[j])" if written.startswith("sum") else ""
    (problem,) = problems(f"mixer m {{\n  y = {before}{written}{after} * q\n  z = 1\n}}\n")
    assert (problem.code, problem.span.text, problem.nearest) == ("E-SYNTAX", written, meant)


def test_mistakes_behind_a_pair_are_found() -> None:
    found = problems("mixer m {\n y = c^{i-j} * q\n z = = 1\n}\nmixer n {\n w = 2 w\n}\n")
    assert [d.span.line for d in found] == [2, 3, 6]


@pytest.mark.parametrize(
    "text",
    [
        "mixer a { y = q }",
        'mixer a "t" extends b { y = q } mixer c { y = q }',
        "modifier m on x { x = 2 * x }\nmixer a {\n y = q\n}",
    ],
)
def test_braces_of_units_are_none_of_these(text: str) -> None:
    assert problems(text) == []


def test_a_pair_over_two_lines_is_left_to_the_grammar() -> None:
    assert all(d.nearest is None for d in problems("mixer m {\n y = c^{i-\nj} * q\n}\n"))
