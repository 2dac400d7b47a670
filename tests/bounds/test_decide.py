"""Verdicts, with the reports of them."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import pytest

from dsfc.bounds.certificate import check_text, write
from dsfc.bounds.chain import Chain
from dsfc.bounds.decide import Undecided, Within, decide
from dsfc.bounds.report import as_json, number, report
from dsfc.bounds.search import search
from dsfc.bounds.witness import Apart, Draws, execute, refute
from dsfc.trusted.rejected import Rejected

QKV = "abs(q) <= 1, abs(k) <= 1, abs(v) <= 1"
ROOT = "abs(u) <= 1, m >= 0.25"


def test_a_bound_that_holds_is_proved(ask) -> None:
    verdict = decide(ask("root_mean_6", "root_mean_5", ROOT, "1e-4", d=2))
    assert isinstance(verdict, Within)
    assert verdict.observed.points
    assert verdict.observed.worst <= verdict.chain.bound <= Fraction("1e-4")
    said = report(verdict, "a", "b")
    assert "a = b within 1e-4: proved" in said
    assert "quotient: |x / y - x' / y'|" in said
    assert as_json(verdict)["verdict"] == "proved within"


def test_a_bound_that_does_not_hold_is_refuted_at_a_point_of_the_domain(ask) -> None:
    question = ask("root_mean_6", "root_mean_5", ROOT, "1e-6", d=2)
    verdict = decide(question)
    assert isinstance(verdict, Apart)
    assert abs(verdict.a.re.low - verdict.b.re.high) > question.within
    assert isinstance(check_text(write(verdict)), Apart)
    assert "refuted" in report(verdict, "a", "b")
    assert as_json(verdict)["verdict"] == "refuted"


def test_a_point_outside_of_the_domain_refutes_nothing(ask) -> None:
    verdict = decide(ask("root_mean_6", "root_mean_5", ROOT, "1e-6", d=2))
    assert isinstance(verdict, Apart)
    for where in ("abs(u) <= 1/1000", "abs(u) <= 1, m >= 2", "abs(u) <= 1, norm[d](u) <= 1/8"):
        other = ask("root_mean_6", "root_mean_5", where, "1e-6", d=2)
        with pytest.raises(Rejected, match="bounds"):
            execute(Draws(other), verdict.point)


def test_a_point_that_is_near_refutes_nothing(ask) -> None:
    verdict = decide(ask("root_mean_6", "root_mean_5", ROOT, "1e-6", d=2))
    assert isinstance(verdict, Apart)
    question = dataclasses.replace(verdict.question, within=Fraction(1))
    assert "no more than is asked" in str(refute(Draws(question), verdict.point))


def test_a_length_outside_of_the_domain_refutes_nothing(ask) -> None:
    verdict = decide(ask("average", "average_near", "abs(u) <= 2, λ <= 0.9", "1e-6", d=1))
    assert isinstance(verdict, Apart)
    other = ask("average", "average_near", "abs(u) <= 2, λ <= 0.9, L <= 1", "1e-6", d=1)
    with pytest.raises(Rejected, match="length"):
        execute(Draws(other), verdict.point)


def test_between_what_is_proved_and_what_is_seen_nothing_is_said(ask) -> None:
    question = ask("root_mean_6", "root_mean_5", ROOT, d=2)
    chain = search(question)
    assert isinstance(chain, Chain)
    verdict = decide(dataclasses.replace(question, within=chain.bound * Fraction(9, 10)))
    assert isinstance(verdict, Undecided)
    assert verdict.bound is not None
    assert "which is more than is asked" in report(verdict, "a", "b")
    assert as_json(verdict)["verdict"] == "unknown"


def test_random_features_are_unknown(ask) -> None:
    verdict = decide(ask("softmax", "performer", QKV, d=2, h=1, r=2))
    assert isinstance(verdict, Undecided)
    assert "drawn at random" in verdict.obstacle


def test_the_two_have_to_go_together(ask) -> None:
    with pytest.raises(ValueError, match="axes"):
        decide(ask("recurrent", "decay", "abs(u) <= 1"))
    with pytest.raises(ValueError, match="negative"):
        decide(dataclasses.replace(ask("recurrent", "taps"), within=Fraction(-1)))


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("1e-6", "1e-6"),
        ("1/3", "0.334"),
        ("2", "2"),
        ("1234567/2", "6.18e5"),
        ("999999/1000000", "1.0"),
    ],
)
def test_numbers_are_printed_rounded_upward(value: str, said: str) -> None:
    assert number(Fraction(value)) == said
