"""Verdicts as text and JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from dsfc.api.locate import Place
from dsfc.api.pipeline import SpecText
from dsfc.prover.equivalent import equivalent
from dsfc.prover.report import as_json, report, shown
from dsfc.prover.verdict import Proved, Unknown
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.system.ir import System
from dsfc.trusted.check import check, write


def test_a_proof_says_what_was_proved_and_where(system: Callable) -> None:
    verdict = equivalent(system("attention", "as_state"), system("attention", "eta_gauge"))
    text = report(verdict, "a", "b", explain=True)
    assert text.startswith("a = b: proved\n")
    assert "for every length" in text and "for all h, n, p (from h = 2, n = 2, p = 2)" in text
    assert "A.S[0,0,0] - eta[0] B.S[0,0,0] = 0" in text
    assert as_json(verdict)["verdict"] == "proved"


@pytest.mark.ci
def test_a_size_that_is_not_any_has_its_reason(system: Callable) -> None:
    pair = system("delta", "rule"), system("delta", "with_gram")
    verdict = equivalent(*pair, sizes={"n": 2})
    text = report(verdict, "a", "b")
    assert text.startswith("a = b: proved for n = 2 alone\n")
    assert "for all h, p, for n = 2 alone (from" in text
    assert "not for all n: the update of a state couples its entries" in text
    assert as_json(verdict)["every"] == ["h", "p"] and list(as_json(verdict)["at"]) == ["n"]
    assert as_json(verdict)["verdict"] == "proved at sizes"


def test_a_refutation_shows_the_point_and_both_values(system: Callable) -> None:
    verdict = equivalent(system("attention", "post"), system("attention", "double"))
    text = report(verdict, "post", "double")
    assert "    post: 1\n    double: 2\n" in text
    assert "under what conditions they are equal (--conditions)" in text
    looked = report(verdict, "post", "double", conditions=True)
    assert "under what conditions they are equal, none of which were found" in looked
    document = as_json(verdict)
    assert document["a"]["re"] == ["1", "1"] and document["length"] == 1
    json.dumps(document)


def test_identified_names_are_part_of_the_statement(system: Callable) -> None:
    a, b = system("linear", "one_mode"), system("linear", "one_mode_moved")
    text = report(equivalent(a, b, (("b", "c"), ("c", "b"))), "a", "b")
    assert "c for b" in text and "b for c" in text


def ranged(flag: str, kind: str = "param") -> System:
    text = f"""mixer ranged {{ dims d
  input u : d
  {kind} a : d {flag}
  state s : d
  s = a * s[i-1] + u
  y = s
}}
"""
    return SpecText(Place(Path("m.dsf")), parse(Source("m.dsf", text))).compilation().system


def test_values_that_only_one_mixer_allows_are_named() -> None:
    verdict = equivalent(ranged("unit"), ranged(""))
    line = "a that both allow: it is in (0, 1) in the first, and any number in the second"
    assert f"  values     {line}\n" in report(verdict, "a", "b")
    assert as_json(verdict)["values"] == {"a": ("in (0, 1)", "any number")}
    assert isinstance(verdict, Proved)
    accepted = check(write(verdict.certificate))
    assert f"  values     {line}" in shown(accepted)


def test_values_that_both_mixers_allow_are_no_matter() -> None:
    verdict = equivalent(ranged("positive"), ranged("positive"))
    assert "  values" not in report(verdict, "a", "b") and as_json(verdict)["values"] == {}


def test_values_that_are_fixed_in_both_mixers_are_no_matter() -> None:
    pair = ranged("positive = 1/2", "buffer"), ranged("= 1/2", "buffer")
    assert as_json(equivalent(*pair))["values"] == {}


def test_unknown_has_an_obstacle_and_a_way_on() -> None:
    text = report(Unknown("the obstacle", ("one", "two"), "a rule"), "a", "b")
    assert text == (
        "a = b: unknown\n  obstacle   the obstacle\n  tried      one\n  tried      two\n"
        "  to decide  a rule\n"
    )
