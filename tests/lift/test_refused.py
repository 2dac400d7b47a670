"""What has no spec is named with the user's line and the operation."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from dsfc.api.lift import lift
from dsfc.diagnostics.report import DiagnosticError

pytestmark = pytest.mark.ci

FILE = Path(__file__).parent / "refused.py"
TEXT = FILE.read_text(encoding="utf-8")
LINES = TEXT.splitlines()
MARK = "# refused: "
NAMES = {
    node.name: (node.lineno, node.end_lineno or node.lineno)
    for node in ast.parse(TEXT).body
    if isinstance(node, ast.ClassDef | ast.FunctionDef)
}
WITH_A_LINE = [n for n, (a, b) in NAMES.items() if any(MARK in line for line in LINES[a - 1 : b])]

WITHOUT = {
    "StartGiven": "the argument h has no axis of tokens",
    "the_last": "no output has an axis of tokens",
    "by_the_length": "the module is not the spec that its trace with 5 tokens says",
}


def refusal(name: str):
    shapes = {"x": ["B", "T", "6"]} | ({"h": ["B", "6"]} if name == "StartGiven" else {})
    with pytest.raises(DiagnosticError) as caught:
        lift(FILE, name, inputs=shapes)
    (found,) = caught.value.diagnostics
    assert found.code == "E-LIFT"
    assert found.span.source.name == str(FILE)
    return found


def test_there_are_many() -> None:
    assert len(WITH_A_LINE) > 20
    assert {*WITH_A_LINE, *WITHOUT} == set(NAMES)


@pytest.mark.share(1, ci=2)
@pytest.mark.parametrize("name", WITH_A_LINE)
def test_a_refusal_names_line_and_operation(name: str) -> None:
    found = refusal(name)
    line = LINES[found.span.line - 1]
    assert MARK in line
    assert line.partition(MARK)[2] in found.message


@pytest.mark.parametrize("name", WITHOUT)
def test_what_is_no_lines_is_said_of_the_file(name: str) -> None:
    assert WITHOUT[name] in refusal(name).message
