"""Roots of numbers at points."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from fractions import Fraction

import pytest

from dsfc.trusted.check import check, write
from dsfc.trusted.polynomial import HALF, Quotient, number
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.rules.roots import without_powers
from dsfc.trusted.symbols import Symbols

S = Symbols()


def root(value: Fraction | int, degree: int = 2) -> Quotient:
    return S.exp(S.log(number(value)) * number(Fraction(1, degree)))


@pytest.mark.parametrize("value", [7, Fraction(16, 7), Fraction(7, 16), 21])
@pytest.mark.parametrize("degree", [2, 3])
def test_a_power_of_a_root_is_a_number(value: Fraction, degree: int) -> None:
    for power in (degree, -degree, 2 * degree):
        found = without_powers(root(value, degree).power(power), S)
        assert found.number == Fraction(value) ** (power // degree)
    odd = without_powers(root(value, degree).power(degree + 1), S)
    assert odd.text == without_powers(number(value) * root(value, degree), S).text
    assert odd.number is None


def test_denominators_hold_roots_too() -> None:
    cubed, simple = root(2).power(3) + number(1), number(2) * root(2) + number(1)
    assert not without_powers(cubed.inverse(), S) - simple.inverse()
    with pytest.raises(ZeroDivisionError):
        without_powers((root(2).power(2) - number(2)).inverse(), S)


def test_what_is_no_root_of_a_positive_number_stays() -> None:
    """(e^(log x / 2))^2 is x where x has a logarithm; the number e is no root at all."""
    x = S.leaf("x[]", real=True, positive=True)
    negative = S.exp(S.opaque("log", (number(-3),), True, False) * HALF)
    zero = S.exp(S.log(number(0)) * HALF)
    product = S.exp(S.log(number(2)) * S.log(number(3)) * HALF)
    square = S.exp(S.log(number(2)).power(2) * HALF)
    for other in (S.exp(S.log(x) * HALF), negative, zero, S.exp(HALF), product, square,
                  S.exp(HALF / (x + number(1)) * S.log(number(2))), x):  # fmt: skip
        assert without_powers(other.power(2), S).text == other.power(2).text


def test_what_stands_beside_a_root_stays() -> None:
    x = S.leaf("x[]", real=True, positive=True)
    for other in (x, x.power(-2), S.log(number(3)), S.exp(HALF), root(3), x * S.exp(x)):
        found = without_powers(root(2).power(3) * other + other.power(2), S)
        wanted = number(2) * root(2) * other + without_powers(other.power(2), S)
        assert found.text == wanted.text
    assert without_powers(root(2).power(2) * x, S).text == (number(2) * x).text


@pytest.mark.ci
def test_a_coupling_by_a_root(conditional: Callable) -> None:
    """T8c: the squares of η grow by 1, which leaves no point of rational numbers."""
    made = conditional("couplings", "normalised", "root_gate")
    check(write(made))
    values = dict(made.proof.holds.values)
    assert values["eta"][0][:2] == (4, 3) and values["Delta"][0] == (1, 2, 16, 7, 1)
    for other in ((1, 2, 16, 9, 1), (1, 3, 16, 7, 1), (1, 1, 16, 7, 1)):
        moved = tuple(sorted((values | {"Delta": (other, *values["Delta"][1:])}).items()))
        point = dataclasses.replace(made.proof.holds, values=moved)
        proof = dataclasses.replace(made.proof, holds=point)
        with pytest.raises(Rejected, match="does not hold"):
            check(write(dataclasses.replace(made, proof=proof)))
