"""Diagnostics as SARIF."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dsfc.api.pipeline import load
from dsfc.diagnostics.catalogue import CODES, FileProblem
from dsfc.diagnostics.report import DiagnosticError, Label
from dsfc.diagnostics.sarif import _rule, to_sarif
from dsfc.source import Source


def log(*diagnostics: object) -> dict:
    document = json.loads(to_sarif(diagnostics))
    assert document["version"] == "2.1.0"
    (run,) = document["runs"]
    return run


def test_a_result_has_its_rule_its_place_and_its_message(tmp_path: Path) -> None:
    path = tmp_path / "a b.dsf"
    path.write_text("mixer m {\n  dims d\n  input u : d\n  y = ηη\n}\n", encoding="utf-8")
    try:
        load(path).system  # noqa: B018 - made to see what is wrong with it
    except DiagnosticError as error:
        run = log(*error.diagnostics)
    (result,) = run["results"]
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
    assert result["level"] == "error" and "ηη" in result["message"]["text"]
    (location,) = result["locations"]
    place = location["physicalLocation"]
    assert place["artifactLocation"]["uri"].endswith("/a%20b.dsf")
    assert place["region"] == {"startLine": 4, "startColumn": 7, "endLine": 4, "endColumn": 9}


def test_other_places_are_related_locations() -> None:
    source = Source("x/a.dsf", "one\ntwo\n")
    label = Label(source.span(4, 7), "as here")
    run = log(FileProblem(source.span(0, 3), path="p", problem="q", labels=(label,), hint="h"))
    (result,) = run["results"]
    (related,) = result["relatedLocations"]
    assert related["message"]["text"] == "as here"
    assert related["physicalLocation"]["region"]["startLine"] == 2
    assert related["physicalLocation"]["artifactLocation"]["uri"] == "x/a.dsf"
    assert result["message"]["text"].endswith("\nhelp: h")


def test_what_stands_in_no_text_has_no_region() -> None:
    nowhere = Source("none.dsf", "").span()
    (result,) = log(FileProblem(nowhere, path="none.dsf", problem="no such file"))["results"]
    (location,) = result["locations"]
    assert "region" not in location["physicalLocation"]


def test_nothing_wrong_is_an_empty_run() -> None:
    run = log()
    assert run["results"] == [] and run["tool"]["driver"]["rules"] == []


@pytest.mark.parametrize("code", sorted(CODES))
def test_every_code_is_a_rule_with_a_page(code: str) -> None:
    rule = _rule(code)
    assert rule["id"] == code and rule["shortDescription"]["text"] in rule["help"]["text"]
    assert rule["defaultConfiguration"]["level"] in ("error", "note")
