"""Unknowns taken away one by one: what comes out is free of them, and made of what went in."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dsfc.prover.elimination import eliminated
from dsfc.prover.nullstellensatz import sums as free_sums
from dsfc.trusted.polynomial import IMAGINARY, POLYNOMIAL_ZERO, Polynomial, generator

X, Y, Z, E = (generator(f"{name}[]") for name in "xyze")
I = generator(IMAGINARY)  # noqa: E741 - its name


def number(value: int) -> Polynomial:
    return Polynomial({(): Fraction(value)})


ONE = number(1)
POSITIVE = {X.text, (X + ONE).text}
"""What is known not to be 0."""


def combined(polynomials: list[Polynomial]) -> list[Polynomial]:
    """Every sum that the search gives, in both of its orders."""
    constants = frozenset({"e[]"})

    def nonzero(p: Polynomial) -> bool:
        return not p.names or p.text in POSITIVE or p.names <= constants

    out = []
    for shared in (False, True):
        for cofactors in eliminated(polynomials, constants, nonzero, shared):
            total = POLYNOMIAL_ZERO
            for k, c in cofactors.items():
                total = total + c * polynomials[k]
            out.append(total)
    return out


CONTRADICTIONS = [
    [X * Y + -ONE, X * X * Y + -ONE, X + -number(2)],
    [Y + -E, Y * Y + -E],
    [X * Y + -E, Y * (X + ONE) + -E, X * X * Y * Y + -number(2)],
    [X + -ONE + -Y, X * X + -Y, Y + -number(3)],
    [Y * Z + -ONE, Z * Z + -ONE, Y * Y + -number(4)],
    [Y + -I, Y * Y + -ONE],
    # The equation that gives x a value says, too, that the value is not 0.
    [E * X + Y * Y + -ONE, number(2) * E * X + Y * Y + -ONE],
    # Only the first holds z, and says nothing of the others once z is taken away by it.
    [Z + E * X + Y * Y + -ONE, E * X + Y * Y + -ONE, number(2) * E * X + Y * Y + -ONE],
]
SOLVABLE = [
    [X * Y + -ONE, X * X * Y + -number(2)],
    [Y * Y + -E],
    [Y + -Z, Z + -Y],
    [Y * Z, Y * Y],
    [Y + -I, Y * Y + ONE],
    [E * Z + Y * Y + -ONE, number(2) * E * Z + Y * Y + -ONE],
]


@pytest.mark.parametrize("polynomials", CONTRADICTIONS)
def test_what_has_no_solution_gives_what_is_not_0(polynomials: list[Polynomial]) -> None:
    sums = combined(polynomials)
    assert sums and all(sums)
    assert any(p.names <= {"e[]", "x[]"} for p in sums)


@pytest.mark.parametrize("polynomials", SOLVABLE)
def test_what_has_a_solution_gives_nothing(polynomials: list[Polynomial]) -> None:
    assert not combined(polynomials)


@pytest.mark.parametrize(
    "polynomials, count",
    [
        ([X * Y + Z, X * Y + -Z, Z + -ONE, X * Y + -number(3)], 2),
        ([X * Y + -E, number(2) * X * Y + -number(2) * E + ONE], 1),
        ([X * Y + -E, number(2) * X * Y + -number(2) * E], 0),
        ([X + -ONE, X * X + -ONE], 0),
    ],
)
def test_sums_with_numbers_alone(polynomials: list[Polynomial], count: int) -> None:
    """A multiple that holds an unknown is none of them."""
    out = []
    for cofactors in free_sums(polynomials, frozenset({"e[]"})):
        assert not any(c.names for c in cofactors.values())
        out.append(sum((c * polynomials[k] for k, c in cofactors.items()), POLYNOMIAL_ZERO))
    assert len(out) == count and all(p and p.names <= {"e[]"} for p in out)
