"""Certificates that one check alone refuses: what each would show is false, or about nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from dsfc.api.locate import Place
from dsfc.api.pipeline import SpecText
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.system.ir import System
from dsfc.trusted.check import SIZE_LIMIT, check, write
from dsfc.trusted.claim import (
    Certificate,
    Claim,
    Coefficient,
    Condition,
    Conditional,
    Invariant,
    Point,
    Relation,
    Row,
    Witness,
)
from dsfc.trusted.rejected import Rejected

TEXT = """
mixer late { dims n
  input u, g, f : n
  state S : n
  S = S[i-1] + u - first * u
  y = S[i-1] + g + f
}
mixer nothing { dims n
  input u, g, f : n
  y = g + f
}
mixer scaled { dims n
  input u : n
  param r : n
  y = r * u
}
mixer apart_from { dims n
  input u : n
  param c, e : n
  y = u + (c - e) * u
}
mixer plain { dims n
  input u : n
  y = u
}
mixer bent { dims n
  input u : n
  y = tanh(u)
}
mixer no_fixpoint { dims n
  input u, c, e : n
  y = u + (c - exp(e)) * u + (e - exp(c)) * u
}
mixer below { dims n
  input u : n
  state S, R : n
  S = S[i-1] + u
  R = R[i-1] + u / S
  y = R
}
mixer below_half { dims n
  input u : n
  state S, R : n
  S = S[i-1] / 2 + first * u
  R = R[i-1] + (1 - first) * u / (S[i-1] + first)
  y = R
}
mixer below_third { dims n
  input u : n
  state S, R : n
  S = S[i-1] / 3 + first * u
  R = R[i-1] + (1 - first) * u / (S[i-1] + first)
  y = R
}
mixer over { dims n
  input u, g, f : n
  param w : n positive
  y = w * u / f + 0 * g
}
mixer over_again { dims n
  input u, g, f : n
  param w : n positive
  y = w * u / g
}
mixer tuned { dims n
  input g, f : n
  buffer c : n = 2
  y = c * g
}
mixer tuned_again { dims n
  input g, f : n
  buffer c : n = 2
  y = c * f
}
mixer divides { dims n
  input u : n
  y = u / (u - u)
}
mixer widely { dims n
  input u : n
  param w : n
  y = w * u
}
mixer narrowly { dims n
  input u : n
  param w : n positive
  y = w * u
}
mixer weighed { dims n
  input u : n
  buffer W : n -> n ~ normal(0, 1)
  y = W u
}
mixer weighed_twice { dims n
  input u : n
  buffer W : n -> n ~ normal(0, 1)
  y = 2 * W u
}
mixer weighed_by_one { dims n
  input u : n
  buffer W : n -> n = 1
  y = W u
}
mixer weighed_by_zero { dims n
  input u : n
  buffer W : n -> n = 0
  y = W u
}
"""

DEPTH = 5_000
ONE: Coefficient = (((), 1),)
MINUS: Coefficient = (((), -1),)


def system(name: str) -> System:
    text = SpecText(Place(Path("forged.dsf")), parse(Source("forged.dsf", TEXT)))
    return text.compilation(name).system


def claim(a: str, b: str, *conditions: Condition, **changed: object) -> Claim:
    made = Claim(system(a), system(b), (), (("n", 1),), conditions=conditions)
    return replace(made, **changed)


def polynomial(*terms: tuple[int, dict[str, int]]) -> Coefficient:
    return tuple(sorted((tuple(sorted(m.items())), c) for c, m in terms))


def equals(name: str, other: str) -> Condition:
    """The condition name = other, which gives the name its value."""
    return Condition(polynomial((1, {name: 1}), (-1, {other: 1})), name)


def row(*terms: tuple[tuple[str, ...], Coefficient]) -> Row:
    """A row of which the first term is the pivot."""
    return Row(terms[0][0], tuple(sorted(terms)))


def numbers(*entries: int) -> tuple[tuple[int, int, int, int, int], ...]:
    return tuple((k, 1, 2, 1, 0) for k in entries)


def reason(stated: Claim, proof: Invariant | Conditional | Witness) -> str:
    with pytest.raises(Rejected) as caught:
        check(write(Certificate(stated, proof)))
    return str(caught.value)


# --- pivots ---------------------------------------------------------------------------------------

STEADY = (equals("g[0]@0", "g[0]@1"), equals("f[0]@0", "g[0]@1"))
"""Both are what the first was at the first token, from the second token on."""
HOLDS = Point(3, (("f", numbers(1, 1, 1)), ("g", numbers(1, 1, 1)), ("u", numbers(1, 1, 1))), 2,
              (0,))  # fmt: skip
S, R = ("$A.S[0]",), ("$A.R[0]",)
APART: Coefficient = polynomial((1, {"g[0]@0": 1}), (-1, {"f[0]@0": 1}))


def test_a_pivot_that_is_zero_at_later_tokens_divides_nothing() -> None:
    """(g - f) S = 0 at all tokens, as g = f from the second on: S need not be 0."""
    proof = Conditional(Invariant((row((S, APART)),), False), HOLDS, ())
    stated = claim("late", "nothing", *STEADY)
    assert "the pivot of a row holds what a condition gives a value" in reason(stated, proof)


def test_a_row_that_says_nothing_under_its_conditions_is_none() -> None:
    """(g - f) S S = 0 where g = f holds of all S, so its pivot divides nothing."""
    stated = claim("late", "late", equals("g[0]@0", "f[0]@0"))
    states = row((S, ONE), (("$B.S[0]",), MINUS))
    check(write(Certificate(stated, Conditional(Invariant((states,), False), HOLDS, ()))))
    more = Invariant((states, row((2 * ("$B.S[0]",), APART))), False)
    assert "conditions make the pivot of a row 0" in reason(stated, Conditional(more, HOLDS, ()))


def test_no_update_divides_by_a_sum_of_states() -> None:
    states = (row((S, ONE), (("$B.S[0]",), MINUS)), row((R, ONE), (("$B.R[0]",), MINUS)))
    why = reason(claim("below", "below"), Invariant(states, False))
    assert "an update divides by a value of the state" in why


def test_one_over_a_state_is_no_number() -> None:
    """Else u / S would be as good as u / T, and R = R[i-1] + u / S one in both."""
    only = Invariant((row((R, ONE), (("$B.R[0]",), MINUS)),), False)
    why = reason(claim("below_half", "below_third"), only)
    assert "an update divides by a value of the state" in why


# --- points ---------------------------------------------------------------------------------------


def test_a_condition_must_be_read_somewhere() -> None:
    """At the first token alone every condition on the token before holds of nothing."""
    stated = claim("late", "late", equals("g[0]@0", "g[0]@1"))
    states = Invariant((row((S, ONE), (("$B.S[0]",), MINUS)),), False)
    check(write(Certificate(stated, Conditional(states, HOLDS, ()))))
    short = Point(1, tuple((name, entries[:1]) for name, entries in HOLDS.values), 0, (0,))
    why = reason(stated, Conditional(states, short, ()))
    assert "a condition is read nowhere at the point where all hold" in why


def over(g: int = 1, w: int = 1, more: tuple[Condition, ...] = ()) -> Certificate:
    """w u / f = w u / g where f = g."""
    stated = claim("over", "over_again", equals("f[0]@0", "g[0]@0"), *more)
    holds = (("f", numbers(g)), ("g", numbers(g)), ("u", numbers(1)), ("w", numbers(w)))
    return Certificate(stated, Conditional(Invariant((), False), Point(1, holds, 0, (0,)), ()))


def test_a_point_keeps_the_declared_ranges() -> None:
    check(write(over()))
    bad = over(w=-1)
    assert "a value of `w` is not positive" in reason(bad.claim, bad.proof)


def test_outputs_exist_at_a_point() -> None:
    bad = over(g=0)
    assert "the outputs have no value here" in reason(bad.claim, bad.proof)


def test_conditions_speak_of_what_a_point_has() -> None:
    for name, why in (("κ[0]", "`κ[0]` has no value"), ("g[7]@0", "there is no g[7]@0")):
        bad = over(more=(equals("u[0]@0", name),))
        assert why in reason(bad.claim, bad.proof)


def test_a_point_gives_no_value_to_a_fixed_buffer() -> None:
    stated = claim("tuned", "tuned_again", equals("f[0]@0", "g[0]@0"))
    values = (("f", numbers(1)), ("g", numbers(1)))
    rows = Invariant((), False)
    check(write(Certificate(stated, Conditional(rows, Point(1, values, 0, (0,)), ()))))
    more = Point(1, (("c", numbers(2)), *values), 0, (0,))
    assert "`c` has a value of its own" in reason(stated, Conditional(rows, more, ()))


def test_a_point_is_no_word_on_other_parameters() -> None:
    """u is r u for r = 1: that they are apart for r = 2 refutes no case."""
    stated = claim("plain", "scaled", equal=False)
    apart = Witness(1, (("u", ((1, 1, 0, 1),)), ("r", ((2, 1, 0, 1),))), 0, (0,))
    check(write(Certificate(stated, apart)))
    why = reason(replace(stated, case=True), apart)
    assert "a point says nothing of other values of the second's parameters" in why


def test_a_point_gives_no_value_to_a_fixed_matrix() -> None:
    """W is 1 in one and 0 in the other."""
    by_one, by_zero = system("weighed_by_one"), system("weighed_by_zero")
    u, w = ("u", ((1, 1, 0, 1),)), ("W", ((1, 1, 0, 1),))
    stated = replace(claim("weighed", "weighed_twice", equal=False), b=by_one)
    fixed = replace(stated, a=by_one)
    assert "`W` has a fixed value" in reason(fixed, Witness(1, (u, w), 0, (0,)))
    # The first's W is another, of any value.
    assert "the outputs may be equal here" in reason(stated, Witness(1, (u, w), 0, (0,)))
    check(write(Certificate(replace(stated, a=by_zero), Witness(1, (u,), 0, (0,)))))
    both = replace(stated, a=by_zero, b=by_zero)
    assert "the outputs may be equal here" in reason(both, Witness(1, (u,), 0, (0,)))


# --- a case of the second -------------------------------------------------------------------------


def case(a: str, b: str, *conditions: Condition, rows: tuple[Row, ...] = ()) -> str:
    stated = claim(a, b, *conditions, case=True)
    return reason(stated, Conditional(Invariant(rows, False), None, ()))


def test_equality_in_a_smaller_range_makes_no_case() -> None:
    """w u is no case of one where w is positive, though they are equal where both are there."""
    stated = claim("widely", "narrowly")
    check(write(Certificate(stated, Invariant((), False))))
    assert "says nothing of cases" in reason(replace(stated, case=True), Invariant((), False))


def test_conditions_on_each_other_have_no_solution() -> None:
    """c = e^e and e = e^c holds for no c and e."""
    solved = (
        equals("c[0]@0", "exp(e[0]@0)"),
        equals("e[0]@0", "exp(c[0]@0)"),
    )
    why = case("plain", "no_fixpoint", *solved)
    assert "a value is a function of what has a value" in why


def test_a_case_is_given_no_number_of_the_claim() -> None:
    why = case("plain", "apart_from", equals("c[0]", "κ[0]"), equals("e[0]", "κ[0]"))
    assert "a value is made of a number of the claim's own" in why


def test_no_laws_under_conditions() -> None:
    stated = claim("late", "late", equals("g[0]@0", "f[0]@0"))
    states = Invariant((row((S, ONE), (("$B.S[0]",), MINUS)),), False)
    laws = replace(states, relations=(Relation((ONE, ONE), ((), ONE)),))
    why = reason(stated, Conditional(laws, HOLDS, ()))
    assert "laws of functions are not used under conditions" in why


# --- documents ------------------------------------------------------------------------------------


def refused(text: str) -> str:
    with pytest.raises(Rejected) as caught:
        check(text)
    return str(caught.value)


def test_a_document_is_not_too_long() -> None:
    good = write(over())
    check(good + " ")
    check(good.ljust(SIZE_LIMIT))
    assert "longer than" in refused(good.ljust(SIZE_LIMIT + 1))
    assert "longer than" in refused(good + " " * SIZE_LIMIT)


@pytest.mark.parametrize("text", ["[]", '["format"]', "{}", "3", '"format"', "null"])
def test_a_document_is_an_object_with_a_format(text: str) -> None:
    assert refused(text) == "not a certificate"


def test_numbers_are_numbers() -> None:
    bad = write(over()).replace('"equal":true', '"equal":NaN')
    assert "NaN is not a number" in refused(bad)


def test_a_definition_is_not_nested_without_end() -> None:
    made = Certificate(claim("bent", "bent"), Invariant((), False))
    check(write(made))
    document = json.loads(write(made))
    leaf, bent = document["nodes"]
    more = [[*bent[:2], [{"node": k}], *bent[3:]] for k in range(DEPTH)]
    text = json.dumps(document | {"nodes": [leaf, *more]})
    assert "nested too deeply" in refused(text.replace('{"node": 1}}', f'{{"node": {DEPTH}}}}}'))


def test_nothing_is_divided_by_zero() -> None:
    nothing = Certificate(claim("divides", "divides"), Invariant((), False))
    assert refused(write(nothing)) == "a denominator is 0"
