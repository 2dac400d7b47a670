"""Polynomials and quotients: the laws of a field, against plain fractions at random points."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dsfc.check_proof.polynomial import (
    IMAGINARY,
    ONE,
    Polynomial,
    Quotient,
    TooLarge,
    constant,
    divided,
    generator,
    number,
)

NAMES = ("x[]", "y[]", "z[]")
SMALL = st.integers(-3, 3)
POINT = st.tuples(*[st.sampled_from([Fraction(2), Fraction(-3), Fraction(5, 7)])] * 3)


@st.composite
def polynomials(draw: st.DrawFn) -> Polynomial:
    out = constant(draw(SMALL))
    for _ in range(draw(st.integers(0, 3))):
        term = constant(draw(SMALL))
        for name in NAMES:
            exponent = draw(st.integers(-1, 2))
            if exponent:
                term = term * Polynomial({((name, exponent),): Fraction(1)})
        out = out + term
    return out


def at(p: Polynomial, point: tuple[Fraction, ...]) -> Fraction:
    values = dict(zip(NAMES, point, strict=True))
    out = Fraction(0)
    for m, c in p.terms.items():
        for name, exponent in m:
            c = c * values[name] ** exponent
        out += c
    return out


def value(q: Quotient, point: tuple[Fraction, ...]) -> Fraction:
    out = at(q.num, point)
    for base, exponent in q.den.items():
        assume(at(base, point) != 0)
        out /= at(base, point) ** exponent
    return out


@given(polynomials(), polynomials(), POINT)
def test_sums_and_products_are_those_of_the_values(p, q, point) -> None:
    assert at(p + q, point) == at(p, point) + at(q, point)
    assert at(p * q, point) == at(p, point) * at(q, point)
    assert (p == q) == (not (p + -q))


@given(polynomials(), polynomials())
def test_a_product_divides_by_its_factors(p: Polynomial, q: Polynomial) -> None:
    _, base = q.split() if q else (ONE, ONE)
    assume(p and len(base.terms) > 1)
    assert divided(p * base, base) == p


def test_what_holds_i_is_divided_too() -> None:
    """A number for i would not have the square -1."""
    a, i = generator("a"), generator(IMAGINARY)
    twice = a + i * constant(2)
    assert divided((a + i) * twice, a + i) == twice


@given(polynomials(), polynomials(), POINT)
def test_what_divides_multiplies_back(p: Polynomial, q: Polynomial, point) -> None:
    assume(q)
    _, base = q.split()
    assume(p and len(base.terms) > 1)
    found = divided(p, base)
    assert found is None or found * base == p


@given(polynomials())
def test_a_polynomial_is_its_split(p: Polynomial) -> None:
    assume(p)
    simple, rest = p.split()
    assert simple * rest == p
    assert len(simple.terms) == 1
    assert rest == (p * constant(-6)).split()[1]


@given(polynomials(), polynomials(), polynomials(), POINT)
def test_quotients_are_a_field(a, b, c, point) -> None:
    x, y, z = Quotient(a), Quotient(b), Quotient(c)
    assert not (x * (y + z) - (x * y + x * z))
    assert not ((x + y) + z - (x + (y + z)))
    assume(b and c)
    assert not (x / y * y - x)
    assert not (x / y + x / z - x * (y + z) / (y * z))
    left = value(x / y + z, point)
    assume(at(b, point) != 0)
    assert left == at(a, point) / at(b, point) + at(c, point)


@given(polynomials(), polynomials())
def test_equal_texts_are_equal_values(p: Polynomial, q: Polynomial) -> None:
    assume(q)
    left, right = Quotient(p * q) / Quotient(q), Quotient(p)
    if left.text == right.text:
        assert not (left - right)
    # Whatever the text, a multiple of a polynomial cancels to a polynomial.
    assert not left.den and left.text == right.text


def test_the_square_of_i_is_minus_one() -> None:
    i = generator(IMAGINARY)
    assert i * i == constant(-1)
    x = Quotient(generator("x[]"))
    z = x + Quotient(i)
    assert not (number(1) / z * z - number(1))
    assert (z * (x - Quotient(i)) - x * x).number == 1


def test_a_zero_has_no_inverse() -> None:
    x = Quotient(generator("x[]"))
    with pytest.raises(ZeroDivisionError, match="a denominator is 0"):
        number(1) / (x - x)


def test_growth_has_a_bound() -> None:
    p = Polynomial({(): Fraction(1)})
    for k in range(8):
        p = p + generator(f"x{k}[]")
    with pytest.raises(TooLarge, match="a polynomial of"):
        p.power(12)
    with pytest.raises(TooLarge, match="a product of polynomials"):
        p.power(4) * p.power(5)
    with pytest.raises(TooLarge, match="a power of exponent 65"):
        generator("x[]").power(65)


def test_substitution_keeps_other_names() -> None:
    x, y = Quotient(generator("x[]")), Quotient(generator("y[]"))
    q = (x + y) / (x - y)
    assert not (q.substituted({"x[]": number(3) * y}) - number(2))


def test_a_polynomial_is_no_number() -> None:
    assert constant(1) == ONE and ONE != 1
