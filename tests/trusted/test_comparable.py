"""What two systems have together: sizes, which arrays are one, and what is known of them."""

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
from dsfc.trusted.claim import Claim, Condition
from dsfc.trusted.comparable import (
    LARGEST,
    array_names,
    comparable,
    narrower,
    never_zero_arrays,
    nonzero,
    own_parameters,
    positive,
    real_arrays,
    side_names,
    slots,
    unlike,
)

SIZES = (("n", 2), ("p", 3))
RANGES = {
    Constraint.NONE: {-1, 0, 1, 2},
    Constraint.NONNEG: {0, 1, 2},
    Constraint.NONZERO: {-1, 1, 2},
    Constraint.POSITIVE: {1, 2},
    Constraint.UNIT: {1},
}
"""Numbers that stand for a negative one, 0, one in (0, 1) and one above."""


def mixer(body: str) -> System:
    text = f"mixer m {{ dims n, p\n {body}\n}}"
    return SpecText(Place(Path("m.dsf")), parse(Source("m.dsf", text))).compilation("m").system


def claim(a: str, b: str, names: tuple[tuple[str, str], ...] = (), **changed: object) -> Claim:
    return replace(Claim(mixer(a), mixer(b), names, SIZES), **changed)


PLAIN = "input u : n\n param w : n\n y = w * u"


@pytest.mark.parametrize("size", [1, LARGEST])
def test_sizes_go_from_1_to_a_bound(size: int) -> None:
    comparable(replace(claim(PLAIN, PLAIN), sizes=(("n", size), ("p", 1))))
    for other in (0, -1, LARGEST + 1, True):
        with pytest.raises(ValueError, match="not an integer from 1 to 256"):
            comparable(replace(claim(PLAIN, PLAIN), sizes=(("n", size), ("p", other))))


@pytest.mark.parametrize("locality", [0, 1, 63])
def test_how_far_back_slots_read_has_a_bound(locality: int) -> None:
    made = claim(PLAIN, "input u, z : n\n y = z * u", equal=False, case=True)
    comparable(replace(made, locality=locality))
    for other in (-1, 64):
        with pytest.raises(ValueError, match="how far back slots read"):
            comparable(replace(made, locality=other))
    for changed in ({"equal": True}, {"case": False}):
        with pytest.raises(ValueError, match="how far back slots read"):
            comparable(replace(made, locality=locality, **changed))


OUTER = "input u : n\n param w : p\n y = u ⊗ w"


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("input u : n\n y = u", "input u : n\n param w : p\n y = u * sum[p](w)", True),
        (OUTER, "input u : n\n param w : p\n y = w ⊗ u", True),
        ("input u : n\n y = u", "input u : n\n y = sum[n](u)", False),
        (OUTER, "input u : n\n param w : p\n y = u * sum[p](w)", False),
        (OUTER, "input u : n\n param w, r : p\n y = Re(u ⊗ w) + Im(cis(u) ⊗ r)", True),
    ],
)
def test_outputs_have_the_same_axes(a: str, b: str, same: bool) -> None:
    if same:
        comparable(claim(a, b))
        return
    with pytest.raises(ValueError, match="the outputs have"):
        comparable(claim(a, b))


@pytest.mark.parametrize("large", RANGES)
@pytest.mark.parametrize("small", RANGES)
def test_a_range_of_the_second_holds_that_of_the_first(
    small: Constraint, large: Constraint
) -> None:
    """Else values of the first are cases of nothing; what the second alone has may be anything."""

    def of(name: str, constraint: Constraint) -> System:
        system = mixer(f"input u : n\n param {name} : n\n y = {name} * u")
        (w,) = system.params
        return replace(system, params=(replace(w, constraint=constraint),))

    made = Claim(of("w", small), of("v", large), (("v", "w"),), SIZES)
    assert (narrower(made) is None) is (RANGES[small] <= RANGES[large])
    assert narrower(made) in (None, "w")
    assert narrower(replace(made, names=())) is None


def test_buffers_of_one_value_are_one_array() -> None:
    def of(value: str) -> str:
        return f"input u : n\n buffer g : n{value}\n y = g * u"

    same = (" = 1 / (iota[n] + 1)", " = 2 * ones[n]", "")
    for a in same:
        for b in same:
            made = claim(of(a), of(b))
            assert unlike(made) == (frozenset() if a == b else frozenset({"g"}))
            assert array_names(made, True) == ({} if a == b else {"g": "b:g"})
            assert array_names(made, False) == {}
            assert side_names(made) == {"u", "g"} | (set() if a == b else {"b:g"})
    renamed = claim(of(" = 2"), of(" = 3").replace("g", "r"), (("r", "g"),))
    assert array_names(renamed, True) == {"r": "b:g"}


KINDS = """
  input u : n; k : n {u}
  param a : n positive; b : n unit; c : n nonneg; e : n nonzero; f : n; z : n complex
  y = a * b * c * e * f * u * k * Re(z)
"""


def test_what_is_known_of_arrays_is_what_the_first_declares() -> None:
    """A claim is about its range; that both are positive is what both declare."""
    first = KINDS.format(u="positive")
    made = claim(first, first.replace("positive", ""))
    assert positive(made) == {"a", "b", "k"}  # what is in (0, 1) too
    assert nonzero(made) == {"b", "e"}
    assert real_arrays(made) == {"u", "k", "a", "b", "c", "e", "f"}


def test_what_one_alone_has_is_positive_where_it_says_so() -> None:
    more = "input u : n; s : n positive\n param w : n; r : n positive\n y = w * r * s * u"
    assert positive(claim(PLAIN, more)) == positive(claim(more, PLAIN)) == {"r", "s"}


def test_what_the_second_alone_has_is_its_own() -> None:
    declared = "input u, s : n; t : n nonzero\n param w : n; r : n unit; A : n -> n"
    second = f"{declared}\n y = w * r * s * t * (A u)"
    made = claim(PLAIN, second)
    assert own_parameters(made) == {"r": Constraint.UNIT, "A": Constraint.NONE}
    assert slots(made) == {"s": Constraint.NONE, "t": Constraint.NONZERO}
    assert slots(replace(made, free=True)) == {}
    assert never_zero_arrays(made) == {"r", "A", "s", "t"}
    given = replace(made, conditions=(Condition((), "r[0]"), Condition((), "s[0]@0")))
    assert never_zero_arrays(given) == {"A", "t"}
    renamed = replace(made, names=(("r", "w"), ("w", "v")))
    assert own_parameters(renamed) == {"v": Constraint.NONE, "A": Constraint.NONE}
