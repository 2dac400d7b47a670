"""Proofs of states that run backwards: what is no factor for the kernel is an answer, no error."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsfc.api.locate import Place
from dsfc.api.pipeline import SpecText
from dsfc.prover.equivalent import equivalent
from dsfc.prover.verdict import Proved, ProvedWhereDefined, Unknown
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.system.ir import System

HEAD = """dims p
  input k : p
  param a unit
  param e, f
  param z nonzero
  param w : p complex
"""


def system(update: str, output: str, field: str = "") -> System:
    """The system of a mixer of one state T that runs backwards."""
    lines = f"  state T : p {field} backward\n  T = {update}\n  y = {output}"
    text = f"mixer m {{ {HEAD}{lines}\n}}\n"
    return SpecText(Place(Path("m.dsf")), parse(Source("m.dsf", text))).compilation("m").system


PAIRS = {
    "what may be 0 below": (("a * T[i+1] + k", "T / e"), ("a * T[i+1] + k / e", "T")),
    "what is other than 0 below": (("a * T[i+1] + k", "T / z"), ("a * T[i+1] + k / z", "T")),
    "taken out of the sum": (("a * T[i+1] + e * k", "T"), ("a * T[i+1] + k", "e * T")),
    "complex": (
        ("a * T[i+1] + k", "Re(w * T) + e", "complex"),
        ("a * T[i+1] + w * k", "Re(T) + e", "complex"),
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_what_the_kernel_takes_for_no_factor_is_no_internal_error(name: str) -> None:
    a, b = PAIRS[name]
    assert isinstance(equivalent(system(*a), system(*b)), Unknown | Proved | ProvedWhereDefined)


def test_an_identified_parameter_of_another_name_is_no_internal_error() -> None:
    """b's e is a's f, and b's f is a's e."""
    a = system("a * T[i+1] + k", "e * T * f^2")
    b = system("a * T[i+1] + f * k", "T * e^2")
    found = equivalent(a, b, (("e", "f"), ("f", "e")))
    assert isinstance(found, Unknown | Proved)
