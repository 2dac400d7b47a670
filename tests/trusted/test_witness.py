"""Points of a witness: which values a declaration allows, and which entry an index is."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from dsfc.api.locate import Place
from dsfc.api.pipeline import SpecText
from dsfc.expr.declarations import Constraint
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.system.ir import System
from dsfc.trusted.check import check, write
from dsfc.trusted.claim import Certificate, Claim, Same, Somewhere, Witness
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.witness import LENGTH_LIMIT, in_range, place_of

ALLOWED = {
    Constraint.NONE: (-1, 0, "1/2", 1, 2),
    Constraint.POSITIVE: ("1/2", 1, 2),
    Constraint.NONNEG: (0, "1/2", 1, 2),
    Constraint.UNIT: ("1/2",),
    Constraint.NONZERO: (-1, "1/2", 1, 2),
}


def mixer(body: str, sizes: str = "n = 2, p = 3") -> System:
    text = f"mixer m {{ dims {sizes}\n {body}\n}}"
    return SpecText(Place(Path("m.dsf")), parse(Source("m.dsf", text))).compilation("m").system


def answer(certificate: Certificate) -> str:
    """Why a certificate is refused; empty if it is accepted."""
    try:
        check(write(certificate))
    except Rejected as e:
        return str(e)
    return ""


@pytest.mark.parametrize("constraint", ALLOWED)
@pytest.mark.parametrize("value", [-1, 0, "1/2", 1, 2])
def test_a_value_lies_in_the_declared_range(constraint: Constraint, value: int | str) -> None:
    allowed = value in ALLOWED[constraint]
    assert in_range(Fraction(value), constraint) is allowed
    flag = "" if constraint is Constraint.NONE else constraint.value
    system = mixer(f"input u : n\n param w : n {flag}\n y = w * u")
    number = Fraction(value)
    entry = (number.numerator, number.denominator, 0, 1)
    point = Somewhere(1, (("u", ((1, 1, 0, 1),) * 2), ("w", (entry,) * 2)))
    claim = Claim(system, system, (), (("n", 2),))
    assert (answer(Certificate(claim, Same(), point)) == "") is allowed


@pytest.mark.parametrize("constraint", ALLOWED)
@pytest.mark.parametrize("value", [-1, 0, "1/2", 1, 2])
def test_a_buffer_has_a_value_in_its_range_or_at_its_floor(
    constraint: Constraint, value: int | str
) -> None:
    """A floor of sigmoid rounded to 0 is one; 1 is none of a decay."""
    floor = constraint is Constraint.UNIT and value == 0
    plain = mixer(f"input u : n\n buffer g : n = {value} * ones[n]\n y = g * u")
    # No text gives a buffer a value outside of its range, a certificate can.
    (g,) = plain.buffers
    system = replace(plain, buffers=(replace(g, constraint=constraint),))
    claim = Claim(system, system, (), (("n", 2),))
    point = Somewhere(1, (("u", ((1, 1, 0, 1),) * 2),))
    found = answer(Certificate(claim, Same(), point))
    assert (found == "") is (value in ALLOWED[constraint] or floor), found


OUTER = mixer("input u : n; v : p\n y = u ⊗ v")
OUTER_CLAIM = Claim(OUTER, OUTER, (), (("n", 2), ("p", 3)))


def test_an_index_counts_entries_with_the_last_axis_running_fastest() -> None:
    found = [place_of(OUTER_CLAIM, (a, b)) for a in range(2) for b in range(3)]
    assert found == list(range(6))
    for index in ((2, 0), (0, 3), (-1, 0), (0, -1), (0,), (0, 0, 0)):
        with pytest.raises(Rejected, match="the index does not fit"):
            place_of(OUTER_CLAIM, index)


def entries(*values: int) -> tuple[tuple[int, int, int, int], ...]:
    return tuple((v, 1, 0, 1) for v in values)


def different(length: int, token: int, index: tuple[int, int], **changed: object) -> str:
    """Of u ⊗ v and one that adds 1 at the last entry of the last of two tokens."""
    values = (("u", entries(0, 0, 0, 1) * (length // 2)), ("v", entries(0, 0, 0, 0, 0, 1)
              * (length // 2)))  # fmt: skip
    other = mixer("input u : n; v : p\n y = 2 * (u ⊗ v)")
    claim = replace(OUTER_CLAIM, b=other, equal=False)
    made = Certificate(claim, Witness(length, values, token, index))
    return answer(replace(made, proof=replace(made.proof, **changed)))


def test_a_gap_is_at_one_entry_of_one_token() -> None:
    assert different(2, 1, (1, 2)) == ""
    for token, index in ((0, (1, 2)), (1, (0, 2)), (1, (1, 1)), (1, (0, 0))):
        assert different(2, token, index) == "the outputs may be equal here"
    for token in (2, -1):
        assert different(2, token, (1, 2)) == "the token is not one of the sequence"


def test_a_witness_may_be_as_long_as_the_bound() -> None:
    assert different(LENGTH_LIMIT, LENGTH_LIMIT - 1, (1, 2)) == ""
    assert "from 1 to 64 tokens" in different(LENGTH_LIMIT + 2, 1, (1, 2))


def test_a_claim_of_difference_may_read_arrays_under_other_names() -> None:
    """The values are stored under the names of the first."""
    other = mixer("input v : n; u : p\n y = 2 * (v ⊗ u)")
    claim = replace(OUTER_CLAIM, b=other, equal=False, names=(("u", "v"), ("v", "u")))
    values = (("u", entries(0, 1)), ("v", entries(0, 0, 1)))
    assert answer(Certificate(claim, Witness(1, values, 0, (1, 2)))) == ""
    assert answer(Certificate(claim, Witness(1, values, 0, (0, 2)))) != ""
