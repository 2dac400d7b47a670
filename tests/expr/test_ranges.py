"""Ranges of expressions as they are written."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsfc.expr.interval import NONNEG, POSITIVE, REALS, UNIT, Interval
from dsfc.expr.ranges import Ranges, power
from dsfc.expr.tree import Add, Axis, Div, Field, Mul, Num, Param, Pow, Prim, Reduce, Reduction

W, Z = Param("w", frozenset()), Param("z", frozenset(), Field.COMPLEX)
HALF = Num(Fraction(1, 2))


@pytest.mark.parametrize(
    "e, expected",
    [
        (Prim("exp", (Mul((Num(Fraction(-1)), Prim("softplus", (W,), Field.REAL))),), Field.REAL),
         UNIT),
        (Pow(Prim("sigmoid", (W,), Field.REAL), Num(Fraction(1, 16))), UNIT),
        (Pow(W, Num(Fraction(2))), Interval(0.0, float("inf"))),
        (Pow(W, HALF), REALS),
        (Div(Num(Fraction(1)), Pow(W, Num(Fraction(2)))), REALS),
        (Add((Prim("exp", (W,), Field.REAL), Num(Fraction(1)))),
         Interval(1.0, float("inf"), True)),
        (Prim("abs", (Prim("cis", (W,), Field.COMPLEX),), Field.REAL), Interval(1.0, 1.0)),
        (Prim("re", (Z,), Field.REAL), REALS),
    ],
)  # fmt: skip
def test_the_range_of_an_expression(e, expected: Interval) -> None:
    found = Ranges().of(e)
    assert expected.within(found) and found.within(expected)


def test_a_sum_of_positive_numbers_is_positive_at_every_size() -> None:
    axis = Axis(0, "n")
    total = Reduce(Reduction.SUM, axis, Param("v", frozenset({axis})))
    known = {"v": POSITIVE}
    assert Ranges(known).of(total).within(POSITIVE)
    assert Ranges().of(total) == REALS


@pytest.mark.parametrize("exponent", [Fraction(1, 2), Fraction(7, 3), Fraction(100)])
def test_a_root_of_0_is_0(exponent: Fraction) -> None:
    assert 0.0 in power(NONNEG, exponent) and 0.0 in power(Interval(0.0, 0.0), exponent)
    assert 0.0 not in power(POSITIVE, exponent)
    relu = Prim("relu", (W,), Field.REAL)
    found = Ranges().of(Pow(relu, Num(exponent)))
    assert (found.low, found.open_low) == (0.0, False)


@given(
    st.integers(0, 12), st.integers(0, 12), st.integers(0, 12), st.integers(-9, 9),
    st.sampled_from([1, 2, 3]),
)  # fmt: skip
def test_powers_of_points_are_in_the_range(a: int, b: int, k: int, over: int, under: int) -> None:
    low, high, exponent = min(a, b) / 4, max(a, b) / 4, Fraction(over, under)
    x = low + (high - low) * k / 12
    if x > 0 or exponent > 0:
        found = power(Interval(low, high), exponent)
        value = x ** float(exponent)
        slack = 1e-12 * abs(value)
        assert found.low - slack <= value <= found.high + slack
        assert value != 0 or 0.0 in found
