"""Values of a second mixer's parameters, found by matching both token by token."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

import dsfc
from dsfc.api.locate import Place
from dsfc.api.pipeline import SpecText, read
from dsfc.prover.matched import WrittenOut, matched
from dsfc.prover.sizes import chosen
from dsfc.prover.subsumes import subsumes
from dsfc.prover.verdict import Instance
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.system.ir import System
from dsfc.trusted.check import check, write
from dsfc.trusted.claim import Claim

MODES = """
mixer stepped {{ dims p
  input u : p
  param a, Δ : p positive
  state x : p
  x = exp(-{decay} * a * Δ) * x[i-1] + {weight} * Δ * u
  y = x
}}
mixer held {{ dims p
  input u : p
  param a, Δ : p positive
  state x : p
  x = exp(-a * Δ) * x[i-1] + ({sign} * (1 - exp(-a * Δ)) / a) * u
  y = x
}}
"""


def modes(decay: int, weight: Fraction, sign: int = 1) -> tuple[System, ...]:
    """A mode by Euler's rule, its decay and weight scaled, and one whose input is held."""
    text = MODES.format(decay=f"({decay})", weight=f"({weight})", sign=sign)
    read_text = SpecText(Place(Path("m.dsf")), parse(Source("m.dsf", text)))
    return tuple(read_text.compilation(name).system for name in ("stepped", "held"))


@pytest.mark.parametrize(
    "decay, weight", [(1, Fraction(1, 2)), (2, Fraction(1)), (3, Fraction(5, 3))]
)
def test_two_numbers_are_found_by_a_function_of_both_and_an_equation_of_one(
    decay: int, weight: Fraction
) -> None:
    """Of e^-aΔ = E and (1 - e^-aΔ) / a = w: a = (1 - E) / w, and Δ = -log E / a."""
    found = subsumes(*modes(decay, weight), (), conditions=True)
    assert isinstance(found, Instance), found
    check(write(found.certificate))
    assert {c.solved.partition("[")[0] for c in found.certificate.claim.conditions} == {
        "a_",
        "Delta_",
    }


def test_a_number_out_of_its_range_is_no_value() -> None:
    """Weights of the first are positive, and those of the second negative where the sign is."""
    for sign, ways in ((1, 1), (-1, 0)):
        a, b = modes(1, Fraction(1), sign)
        claim = Claim(a, b, (), chosen(a, b, 1), case=True, apart=("a", "Delta"))
        assert len(list(matched(claim, 4, (False,)))) == ways


def test_a_longer_search_goes_on_where_a_shorter_one_ended() -> None:
    """It yields what one from the start yields, also where the shorter one was broken off."""
    a, b = modes(2, Fraction(1))
    claim = Claim(a, b, (), chosen(a, b, 1), case=True, apart=("a", "Delta"))
    alone = list(matched(claim, 8, (False,)))
    known = WrittenOut()
    next(matched(claim, 8, (False,), known))
    first = known.of(claim, {}, False)
    assert list(matched(claim, 8, (False,), known)) == alone != []
    assert known.of(claim, {}, False) is first
    assert known.of(claim, {}, True) is not known.of(claim, {}, True)


@pytest.mark.ci
def test_a_factor_between_states_goes_into_the_values_that_hold_it() -> None:
    """An output gate of 1/2, and values of twice the size: W_o = 0 and W_V = 2 W_V."""
    spec = read(Path(__file__).parent / "pairs" / "textbook.dsf")
    a, b = spec.compilation("mlstm_plain").system, dsfc.load("mlstm").system
    claim = Claim(a, b, (), chosen(a, b, 2), case=True, apart=("W_V",))
    conditions = next(matched(claim, scaled=(True,))).conditions
    held = {name for c in conditions for m, _ in c.polynomial for name, _ in m}
    assert not any(name.startswith("κ") for name in held)
    for c in conditions:
        name, zero = c.solved, c.solved.startswith("W_o[")
        terms = {m: k for m, k in c.polynomial}
        value = {} if zero else {((name.replace("W_V_", "W_V"), 1),): -2}
        assert terms in ({((name, 1),): 1, **value}, {((name, 1),): -1, **{m: 2 for m in value}})


def test_what_is_yielded_keeps_the_second_mixer() -> None:
    """Values are conditions, and nothing of the two is changed."""
    a, b = modes(1, Fraction(1))
    claim = Claim(a, b, (), chosen(a, b, 1), case=True, apart=("a", "Delta"))
    (way, *_) = matched(claim, scaled=(False,))
    assert replace(way, conditions=(), functions=()) == claim
