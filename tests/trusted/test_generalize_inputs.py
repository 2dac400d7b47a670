"""Token-wise values as inputs: which they are, what they are called, and what is known of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import dsfc
from dsfc.api.locate import Place
from dsfc.api.pipeline import SpecText
from dsfc.expr.declarations import Constraint
from dsfc.expr.interval import POSITIVE
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.system.ir import System
from dsfc.trusted.claim import Claim
from dsfc.trusted.generalize_inputs import (
    common_names,
    generalize_inputs,
    range_of,
    ranges,
    system_of,
)


def test_what_has_no_values_inside_stays_as_it_is(system: Callable) -> None:
    text = system("attention", "post")
    claim = Claim(text, text, (), (), free=True)
    assert common_names(claim, False) == {} and generalize_inputs(text) == text


def test_values_that_feed_states_and_outputs_are_inputs() -> None:
    ssd = dsfc.load("ssd").system
    claim = Claim(ssd, ssd, (("x", "x"),), (), free=True)
    # The same names of both are not one: that they are equal is a condition.
    assert common_names(claim, False)["x"] == "A:x" and common_names(claim, True)["x"] == "B:x"
    inputs = {t.name: t for t in system_of(claim, False).inputs}
    assert set(inputs) == {"u", "x", "b", "c", "Delta"}
    assert inputs["Delta"].constraint.name == "POSITIVE" and inputs["x"].constraint.name == "NONE"
    assert not system_of(claim, False).streams
    assert {d.name for d in system_of(claim, False).definition} == {"y", "S"}


def test_names_stay_where_nothing_is_free() -> None:
    ssd = dsfc.load("ssd").system
    claim = Claim(ssd, ssd, (("a", "a"),), ())
    assert common_names(claim, False) == {} and common_names(claim, True) == {"a": "a"}
    assert system_of(claim, True) is ssd


def mixer(body: str) -> System:
    text = Source("m.dsf", f"mixer m {{\n input u, v\n {body}\n}}\n")
    return SpecText(Place(Path("m.dsf")), parse(text)).compilation("m").system


def test_what_is_made_of_states_and_what_is_the_same_at_all_tokens_stays() -> None:
    of = mixer("""param w
    gate = exp(u)
    inner = tanh(u)
    outer = inner * v
    c = w * 2
    state s
    s = gate * s[i-1] + v
    r = outer * s
    t = r * u
    y = t[i-1] + c * v""")
    free = generalize_inputs(of)
    made = {t.name: t.constraint for t in free.inputs[2:]}
    assert made == {"gate": Constraint.POSITIVE, "outer": Constraint.NONE}
    assert {s.name for s in of.streams} == {"gate", "inner", "outer", "c", "t"}
    assert {s.name for s in free.streams} == {"c", "t"}
    kept = {d.name for d in free.definition}
    assert kept == {d.name for d in of.definition} - {"gate", "outer"}
    claim = Claim(of, mixer("y = u"), (), (), free=True)
    assert common_names(claim, False) == {"gate": "A:gate", "outer": "A:outer"}
    assert common_names(claim, True) == {}
    found = ranges(claim)
    assert found.keys() == {"A:gate", "A:outer"} and found["A:gate"] == POSITIVE
    assert not found["A:outer"].within(POSITIVE)
    assert ranges(Claim(of, of, (), ())) == {}


def test_a_range_is_one_at_whatever_token() -> None:
    """Before the first token a gate is 0, and an exponential of it 1."""
    of = mixer("""param w positive
    gate = exp(u) + 1
    late = gate[i-1]
    more = late + 2
    now = gate + 2
    c = w + 1
    both = c * gate[i-1]
    y = u * late * more * now * both""")
    found = {s.name: range_of(of, s) for s in of.streams}
    low = {name: (x.low, x.open_low) for name, x in found.items()}
    assert low["late"] == (0.0, False) and low["more"] == (2.0, False)
    assert low["now"] == (3.0, True) and low["both"][0] == 0.0
    kinds = {t.name: t.constraint for t in generalize_inputs(of).inputs}
    assert kinds["late"] is Constraint.NONE and kinds["more"] is Constraint.POSITIVE
