"""Polynomials and quotients: the laws of a field, against plain fractions at random points."""

from __future__ import annotations

from fractions import Fraction
from math import gcd

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dsfc.trusted.polynomial import (
    DIVISION_LIMIT,
    IMAGINARY,
    POLYNOMIAL_ONE,
    TERM_LIMIT,
    Polynomial,
    Quotient,
    TooLarge,
    constant,
    divided,
    generator,
    number,
)

NAMES = ("x[]", "y[]", "z[]")
SMALL = st.sampled_from([0, 1, -1, 2, -3, Fraction(1, 2), Fraction(-3, 4), Fraction(5, 6)])
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
    _, base = q.split() if q else (POLYNOMIAL_ONE, POLYNOMIAL_ONE)
    assume(p and len(base.terms) > 1)
    assert divided(p * base, base) == p


def test_what_holds_i_is_divided_too() -> None:
    """A number for i would not have the square -1."""
    a, i = generator("a"), generator(IMAGINARY)
    twice = a + i * constant(2)
    assert divided((a + i) * twice, a + i) == twice
    assert divided((a + i) * twice + constant(1), a + i) is None
    assert divided((a + i) * twice, a + -i) is None


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
    for factor in (-6, Fraction(4, 9)):
        assert rest == (p * constant(factor)).split()[1]
    # Primitive, with the last term positive, and without a common monomial.
    numbers = rest.terms.values()
    assert all(c.denominator == 1 for c in numbers)
    assert gcd(*(c.numerator for c in numbers)) == 1 and rest.ordered[-1][1] > 0
    for name in rest.names:
        assert min(dict(m).get(name, 0) for m in rest.terms) == 0


@given(polynomials(), polynomials(), polynomials(), POINT)
def test_quotients_are_a_field(a, b, c, point) -> None:
    x, y, z = Quotient(a), Quotient(b), Quotient(c)
    assert not (x * (y + z) - (x * y + x * z))
    assert not ((x + y) + z - (x + (y + z)))
    assume(b and c)
    assert not (x / y * y - x)
    assert not (x / y + x / z - x * (y + z) / (y * z))
    assert not (x / (y / z) * y - x * z)
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


def test_a_zero_has_no_denominator() -> None:
    x = generator("x[]")
    assert Quotient(constant(0), {x: 1}).den == {} and Quotient(POLYNOMIAL_ONE, {x: 2}).den == {
        x: 2
    }


def test_a_zero_has_no_inverse() -> None:
    x = Quotient(generator("x[]"))
    with pytest.raises(ZeroDivisionError, match="a denominator is 0"):
        number(1) / (x - x)


@pytest.mark.ci
def test_growth_has_a_bound() -> None:
    p = Polynomial({(): Fraction(1)})
    for k in range(8):
        p = p + generator(f"x{k}[]")
    with pytest.raises(TooLarge, match="a polynomial of"):
        p.power(12)
    many = {(("x[]", k),): Fraction(1) for k in range(1, TERM_LIMIT + 1)}
    assert len(Polynomial(many).terms) == TERM_LIMIT
    with pytest.raises(TooLarge, match="a polynomial of 8001 terms"):
        Polynomial(many | {(): Fraction(1)})
    with pytest.raises(TooLarge, match="a product of polynomials"):
        p.power(4) * p.power(5)
    assert generator("x[]").power(64).text == "x[]^64"
    with pytest.raises(TooLarge, match="a power of exponent 65"):
        generator("x[]").power(65)


def test_a_long_quotient_is_left_as_a_fraction() -> None:
    x = generator("x[]")

    def power(k: int) -> Polynomial:
        return Polynomial({(("x[]", k),): Fraction(1)})

    for k in (2, DIVISION_LIMIT, DIVISION_LIMIT + 1):
        found = divided(power(k) + -POLYNOMIAL_ONE, x + -POLYNOMIAL_ONE)
        assert found is not None and len(found.terms) == k
    assert divided(power(DIVISION_LIMIT + 2) + -POLYNOMIAL_ONE, x + -POLYNOMIAL_ONE) is None


def test_renaming_reaches_denominators() -> None:
    x, y = Quotient(generator("x[]")), Quotient(generator("y[]"))
    q = (x + number(2)) / ((x + y) * (x - number(3)))
    swapped = q.renamed(lambda g: {"x[]": "y[]", "y[]": "x[]"}[g])
    assert not (swapped - (y + number(2)) / ((x + y) * (y - number(3))))


def test_substitution_keeps_other_names() -> None:
    x, y = Quotient(generator("x[]")), Quotient(generator("y[]"))
    q = (x + y) / (x - y)
    assert not (q.substituted({"x[]": number(3) * y}) - number(2))


def test_a_polynomial_is_no_number() -> None:
    assert constant(1) == POLYNOMIAL_ONE and POLYNOMIAL_ONE != 1


def test_a_text_says_every_part() -> None:
    """Names of generators are made of texts: two values of one text would be one function."""
    x, y, i = (generator(name) for name in ("x[]", "y[]", IMAGINARY))
    for p, text in (
        (constant(0), "0"),
        (constant(-1), "-1"),
        (constant(Fraction(2, 3)) * x, "2/3*x[]"),
        (x * y, "x[]*y[]"),
        (x.power(-2) * y.power(3), "x[]^-2*y[]^3"),
        (-x, "-1*x[]"),
        (i * x + POLYNOMIAL_ONE, "1+i*x[]"),
    ):
        assert p.text == text
    both = Quotient(x + y)
    q = Quotient(x) / both / both / Quotient(x + POLYNOMIAL_ONE)
    assert q.text == "(x[])/((1+x[])^1*(x[]+y[])^2)"


def test_equal_polynomials_are_one_key() -> None:
    x, y = generator("x[]"), generator("y[]")
    assert len({x + y, y + x, x * y, y * x}) == 2 and x != y


def test_a_number_is_told_from_what_is_none() -> None:
    x = Quotient(generator("x[]"))
    assert number(Fraction(3, 4)).number == Fraction(3, 4) and number(0).number == 0
    assert x.number is None and (number(1) / (x + number(1))).number is None
    assert ((x + number(1)) / (x + number(1))).number == 1
