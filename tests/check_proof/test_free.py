"""Token-wise values as inputs: which they are, what they are called, and what is known of them."""

from __future__ import annotations

from collections.abc import Callable

import dsfc
from dsfc.check_proof.claim import Claim
from dsfc.check_proof.free import common_names, freed, side


def test_what_has_no_values_inside_stays_as_it_is(system: Callable) -> None:
    text = system("attention", "post")
    claim = Claim(text, text, (), (), free=True)
    assert common_names(claim, False) == {} and freed(text) == text


def test_values_that_feed_states_and_outputs_are_inputs() -> None:
    ssd = dsfc.load("ssd").system
    claim = Claim(ssd, ssd, (("x", "x"),), (), free=True)
    # The same names of both are not one: that they are equal is a condition.
    assert common_names(claim, False)["x"] == "A:x" and common_names(claim, True)["x"] == "B:x"
    inputs = {t.name: t for t in side(claim, False).inputs}
    assert set(inputs) == {"u", "x", "b", "c", "Delta"}
    assert inputs["Delta"].constraint.name == "POSITIVE" and inputs["x"].constraint.name == "NONE"
    assert not side(claim, False).streams
    assert {d.name for d in side(claim, False).definition} == {"y", "S"}


def test_names_stay_where_nothing_is_free() -> None:
    ssd = dsfc.load("ssd").system
    claim = Claim(ssd, ssd, (("a", "a"),), ())
    assert common_names(claim, False) == {} and common_names(claim, True) == {"a": "a"}
    assert side(claim, True) is ssd
