"""Names that are spelled alike, and no others, are said to be two."""

from __future__ import annotations

from pathlib import Path

from dsfc.api.locate import Place
from dsfc.api.pipeline import SpecText
from dsfc.prover.alike_names import alike_names
from dsfc.prover.equivalent import equivalent
from dsfc.prover.report import report
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.system.ir import System
from dsfc.trusted.claim import Claim


def system(params: str, y: str) -> System:
    text = f"mixer m {{ dims d, n\n  input u : d\n  {params}\n  y = {y}\n}}\n"
    return SpecText(Place(Path("m.dsf")), parse(Source("m.dsf", text))).compilation("m").system


A = system("param W_Q : d -> n\n  param b : n\n  param g : n", "W_Q u + b * g")
B = system("param w_q : d -> n\n  param B : d\n  param h : n", "w_q u * sum[d](B * B) + h")


def test_capitals_and_underscores_make_names_alike() -> None:
    assert alike_names(Claim(A, B, (), ())) == (("w_q", "W_Q"),)


def test_what_is_identified_or_in_both_is_not_named() -> None:
    assert alike_names(Claim(A, B, (("w_q", "W_Q"),), ())) == ()
    assert alike_names(Claim(A, A, (), ())) == ()


def test_a_name_that_two_are_alike_to_is_not_named() -> None:
    two = system("param WQ : d -> n\n  param W_q : d -> n", "WQ u + W_q u")
    one = system("param w_q : d -> n", "w_q u")
    assert alike_names(Claim(two, one, (), ())) == ()


def test_a_refutation_says_how_to_identify_them() -> None:
    one = system("param W_Q : d -> n", "W_Q u")
    other = system("param W_q : d -> n", "W_q u")
    text = report(equivalent(one, other), "one", "other")
    assert "W_Q of one and W_q of other are two (--map W_q=W_Q)" in text
