"""Certificates by values that nothing has: what is real, in its range, or a function of tokens.

Each would show something false, and is refused for the value alone: beside it stands one with a
value that there is.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dsfc.api.locate import Place
from dsfc.api.pipeline import SpecText
from dsfc.expr.declarations import Constraint
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.system.ir import System
from dsfc.trusted.check import check, write
from dsfc.trusted.claim import (
    Certificate,
    Claim,
    Coefficient,
    Condition,
    Conditional,
    Invariant,
    OutputDifference,
    Same,
    SeparatingSequences,
    Witness,
)
from dsfc.trusted.comparable import unlike
from dsfc.trusted.generalize_inputs import system_of
from dsfc.trusted.rejected import Rejected

TEXT = """
mixer plain { dims n
  input u : n
  y = u
}
mixer turned { dims n
  input u : n
  param c : n
  y = -c^2 * u
}
mixer squared { dims n
  input u : n
  y = u^2
}
mixer turned_by { dims n
  input u, s : n
  y = u - u - s^2
}
mixer turned_complex { dims n
  input u : n
  param c : n complex
  y = Re(c) * u
}
mixer counting { dims n
  input u, s : n
  y = (1 - first) * (s - s[i-1]) * u + first * u
}
mixer floor { dims n
  input u : n
  buffer c : n unit = 1 - 2^(-iota[n])
  y = (1 + c) * u
}
mixer over_floor { dims n
  input u : n
  buffer c : n unit = 1 - 2^(-iota[n])
  param b : n
  y = b * c * u
}
mixer nothing { dims n
  input u : n
  y = u - u
}
mixer share { dims n
  input u : n
  buffer c : n unit = 1/2
  y = c * u
}
mixer no_share { dims n
  input u : n
  buffer c : n unit = 1 - 2^(-iota[n])
  y = c * u
}
mixer decay { dims n
  input u : n
  param c : n unit
  y = (1 + c) * u
}
mixer over_decay { dims n
  input u : n
  param b : n
  param c : n unit
  y = b * c * u
}
mixer magnitude { dims n
  input u : n
  param c : n positive
  y = abs(c) * u
}
mixer minus_two { dims n
  input u : n
  buffer c : n = -2
  y = c * u
}
mixer magnitude_of_two { dims n
  input u : n
  buffer c : n = -2
  y = abs(c) * u
}
mixer two { dims n
  input u : n
  buffer c : n = 2
  y = c * u
}
mixer not_zero { dims n
  input u : n
  param c : n nonzero
  y = c * u
}
mixer zero { dims n
  input u : n
  buffer c : n = 0
  y = c * u
}
mixer magnitude_less { dims n
  input u : n
  buffer c : n = -2
  y = (abs(c) - c) * u
}
mixer times_nothing { dims n
  input u : n
  buffer c : n positive = 3
  y = c * u - c * u
}
mixer nothing_of_one { dims n
  input u : n
  buffer c : n = 1
  y = u - u + c - c
}
mixer times_value { dims n
  input u : n
  buffer c2 : n = -2
  c = exp(u)
  y = (abs(c2) - c2) * c
}
mixer thrice { dims n
  input u : n
  y = 3 * u
}
mixer by_size { dims n
  input u : n
  param size
  y = n * u + size * u - size * u
}
mixer by_ones { dims n
  input u : n
  buffer W : n -> n = 1
  y = W u
}
mixer by_twos { dims n
  input u : n
  buffer W : n -> n = 2
  y = W u
}
mixer by_any { dims n
  input u : n
  param W : n -> n
  y = W u
}
mixer gates { dims n
  input u : n
  input x : n positive
  buffer c : n unit = 0
  param w : n positive
  floored = c * exp(u)
  late = x[i-1] * w
  late_sum = x[i-1] * w + w
  square = exp(u) + u^2
  below = w / (1 + x)
  y = floored + late + late_sum + square + below
}
"""
NOTHING: Coefficient = ()


def system(name: str) -> System:
    text = SpecText(Place(Path("values.dsf")), parse(Source("values.dsf", TEXT)))
    return text.compilation(name).system


def claim(a: System | str, b: System | str, **changed: object) -> Claim:
    one, other = (system(s) if isinstance(s, str) else s for s in (a, b))
    return replace(Claim(one, other, (), (("n", 1),)), **changed)


def condition(solved: str, *terms: tuple[int, dict[str, int]]) -> Condition:
    """The condition that some terms are 0."""
    return Condition(tuple(sorted((tuple(sorted(m.items())), c) for c, m in terms)), solved)


def case(a: str, b: str, *conditions: Condition) -> Certificate:
    return Certificate(
        claim(a, b, conditions=conditions, case=True),
        Conditional(Invariant((), False), None, ()),
    )


def refused(certificate: Certificate) -> str:
    with pytest.raises(Rejected) as caught:
        check(write(certificate))
    return str(caught.value)


# --- values of b's own ----------------------------------------------------------------------------


def test_what_is_real_is_given_no_imaginary_value() -> None:
    """-i² = 1, and c² is no negative number."""
    by_i = condition("c[0]", (1, {"c[0]": 1}), (-1, {"i": 1}))
    assert "the value of c[0] may not be real" in refused(case("plain", "turned", by_i))
    slot = condition("s[0]@0", (1, {"s[0]@0": 1}), (-1, {"i": 1, "u[0]@0": 1}))
    assert "the value of s[0]@0 may not be real" in refused(case("squared", "turned_by", slot))


def test_what_is_complex_may_be_given_one() -> None:
    value = condition("c[0]", (1, {"c[0]": 1}), (-2, {}), (-1, {"i": 1}))
    why = refused(case("plain", "turned_complex", value))
    assert "the outputs differ" in why  # its conjugate is 2 - i, of which the rule knows nothing


def test_a_slot_does_not_count_tokens() -> None:
    """s = s[i-1] + 1 is no function of the last tokens: on a constant sequence s would stay."""
    count = condition("s[0]@0", (1, {"s[0]@0": 1}), (-1, {"s[0]@1": 1}), (-1, {}))
    assert "a value is a function of what has a value" in refused(case("plain", "counting", count))


def test_nothing_is_divided_by_a_floor() -> None:
    """b c = 1 + c for c between 0 and 1, and for no b where c is 0."""
    value = condition("b[0]", (1, {"b[0]": 1, "c[0]": 1}), (-1, {}), (-1, {"c[0]": 1}))
    check(write(case("decay", "over_decay", value)))
    assert "the value of b[0] may not exist" in refused(case("floor", "over_floor", value))


def test_a_floor_may_give_nothing_on_a_word() -> None:
    """y = c u is 0 on no word for c between 0 and 1, and on all where c is 0."""
    proof = SeparatingSequences(
        (), ((("u", ((1, 1, 0, 1),)),),), ((0,),), True, (OutputDifference(0, 0, (0,), (((), 1),)),)
    )
    apart = {"equal": False, "case": True}
    check(write(Certificate(claim("nothing", "share", **apart), proof)))
    assert "the sum is 0" in refused(Certificate(claim("nothing", "no_share", **apart), proof))


# --- fixed values ---------------------------------------------------------------------------------


def at(**values: int) -> Witness:
    return Witness(1, tuple((name, ((v, 1, 0, 1),)) for name, v in values.items()), 0, (0,))


@pytest.mark.parametrize(
    "a, b, name",
    [("two", "not_zero", "b:c"), ("not_zero", "two", "c"), ("by_ones", "by_any", "b:W")],
)
def test_a_value_is_none_of_the_array_of_that_name(a: str, b: str, name: str) -> None:
    """c u is 2 u for c = 2 alone: a buffer with a value is no parameter of the other."""
    assert "outputs differ" in refused(Certificate(claim(a, b), Invariant((), False)))
    assert "different arrays" in refused(Certificate(claim(a, b), Same()))
    apart = claim(a, b, equal=False)
    check(write(Certificate(apart, at(u=1, **{name: 3}))))
    assert "has no value" in refused(Certificate(apart, at(u=1)))
    assert "has a fixed value" in refused(
        Certificate(claim("two", "two", equal=False), at(u=1, c=1))
    )


@pytest.mark.parametrize("range_", [c for c in Constraint if c is not Constraint.NONE])
def test_no_point_has_a_fixed_value_outside_its_range(range_: Constraint) -> None:
    """What is declared positive and fixed at -2, as no text may be."""
    a, b = (system(name) for name in ("magnitude_of_two", "minus_two"))
    check(write(Certificate(claim(a, b, equal=False), at(u=1))))

    def declared(s: System) -> System:
        return replace(s, buffers=tuple(replace(t, constraint=range_) for t in s.buffers))

    stated = claim(declared(a), declared(b), equal=False)
    if range_ is Constraint.NONZERO:
        check(write(Certificate(stated, at(u=1))))
    else:
        assert f"the value of `c` is not {range_.value}" in refused(Certificate(stated, at(u=1)))


def test_a_floor_is_below_one() -> None:
    two = system("two")
    unit = tuple(replace(t, constraint=Constraint.UNIT) for t in two.buffers)
    stated = claim(replace(two, buffers=unit), "plain", equal=False)
    assert "the value of `c` is not unit" in refused(Certificate(stated, at(u=1)))


def test_a_floor_may_be_zero_at_a_point() -> None:
    check(write(Certificate(claim("floor", "zero", equal=False), at(u=1))))
    zero = replace(system("zero"), buffers=tuple(
        replace(t, constraint=Constraint.NONZERO) for t in system("zero").buffers))  # fmt: skip
    stated = claim(zero, "plain", equal=False)
    assert "the value of `c` is not nonzero" in refused(Certificate(stated, at(u=1)))


# --- values as inputs -----------------------------------------------------------------------------


def test_values_are_positive_where_they_are_at_every_token() -> None:
    """Before the first token a positive input is 0, and a floor may be."""
    gates = system("gates")
    inputs = {t.name: t.constraint for t in system_of(claim(gates, gates, free=True), False).inputs}
    positive = {name for name, c in inputs.items() if c is Constraint.POSITIVE}
    assert positive == {"x", "late_sum", "square", "below"} and "late" in inputs


# --- two arrays of one name -----------------------------------------------------------------------


def test_what_is_positive_in_one_is_not_in_the_other() -> None:
    """c is -2 in the first and 3 in the second."""
    both = claim("magnitude_less", "times_nothing")
    assert "the outputs differ" in refused(Certificate(both, Invariant((), False)))
    three = replace(both, a=replace(both.a, buffers=both.b.buffers))
    check(write(Certificate(three, Invariant((), False))))


@pytest.mark.parametrize("rule", [Invariant((), False), Invariant((), True), Same()])
def test_matrices_of_one_name_and_two_values_are_two(rule: Invariant | Same) -> None:
    check(write(Certificate(claim("by_ones", "by_ones"), rule)))
    refused(Certificate(claim("by_ones", "by_twos"), rule))
    check(write(Certificate(claim("by_ones", "by_twos", equal=False), at(u=1))))


@pytest.mark.parametrize(
    "a, b, one",
    [
        ("2", "2", True), ("2", "3", False), ("n", "n", True), ("2", "n", False),
        ("1 + n", "1 + n", True), ("1 + n", "2 + n", False), ("1 + n", "1 + n + n^2", False),
        ("n^2", "n^3", False), ("exp(n)", "log(1 + n)", False),
    ],
)  # fmt: skip
def test_two_values_are_two_arrays(a: str, b: str, one: bool) -> None:
    text = "".join(
        f"mixer {name} {{ dims n\n input u : n\n buffer c : n = {value}\n y = c * u\n}}\n"
        for name, value in (("a", a), ("b", b))
    )
    read = SpecText(Place(Path("values.dsf")), parse(Source("values.dsf", text)))
    stated = claim(*(read.compilation(name).system for name in ("a", "b")))
    assert unlike(stated) == (frozenset() if one else {"c"})


def test_a_value_of_one_name_is_not_the_array_of_that_name() -> None:
    """c is e^u; what is called c in the first is -2, and another array."""
    stated = claim("nothing_of_one", "times_value", names=(("c2", "c"),), free=True)
    assert "the outputs differ" in refused(Certificate(stated, Invariant((), False)))


def test_no_condition_speaks_of_a_size() -> None:
    size = condition("size[n]", (1, {"size[n]": 1}), (-3, {}))
    two = case("thrice", "by_size", size)
    stated = replace(two, claim=replace(two.claim, sizes=(("n", 2),)))
    assert "a condition speaks of size[n]" in refused(stated)
