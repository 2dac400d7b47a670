"""Forms are upper bounds: of sums, of products, of states."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsfc.bounds.form import (
    ONE,
    ZERO,
    constant,
    decaying,
    first_token,
    geometric,
    power,
    unknown,
    up,
)
from dsfc.trusted.entries import Obstacle

RATIO = st.fractions(0, Fraction(3, 2), max_denominator=50)


@pytest.mark.ci
@given(st.fractions(0, 10**30, max_denominator=10**60))
def test_rounding_goes_upward_and_not_far(x: Fraction) -> None:
    assert x <= up(x) <= x * (1 + Fraction(1, 2**90))


@given(RATIO, st.integers(0, 40))
def test_powers_are_bounded(x: Fraction, n: int) -> None:
    assert x**n <= power(x, n) <= x**n * (1 + Fraction(1, 2**80))


@given(RATIO, st.integers(0, 8), st.integers(0, 12))
def test_sums_are_bounded(ratio: Fraction, first: int, more: int) -> None:
    last = first + more
    exact = sum(ratio**m for m in range(first, last + 1))
    assert exact <= geometric(ratio, first, last)
    weighted = sum(m * ratio**m for m in range(first, last + 1))
    found = decaying("j", ratio, 1).summed("j", first, last).plain
    assert found is not None
    assert weighted <= found


@given(st.fractions(0, Fraction(49, 50), max_denominator=50), st.integers(0, 8))
def test_endless_sums_converge(ratio: Fraction, first: int) -> None:
    assert geometric(ratio, first, None) >= sum(ratio**m for m in range(first, 60))
    found = decaying("j", ratio, 1).summed("j", first, None).plain
    assert found is not None
    assert found >= sum(m * ratio**m for m in range(first, 60))


def test_a_sum_that_grows_needs_an_end() -> None:
    for ratio in (Fraction(1), Fraction(3, 2)):
        with pytest.raises(Obstacle, match="without end"):
            geometric(ratio, 0, None)
    assert geometric(Fraction(1), 2, 4) == 3


@given(RATIO, st.fractions(0, 5, max_denominator=9), st.fractions(0, 5, max_denominator=9),
       st.integers(1, 12))  # fmt: skip
def test_a_state_stays_below_its_bound(
    slope: Fraction, drive: Fraction, start: Fraction, length: int
) -> None:
    form = unknown("x").times(slope) + constant(drive) + first_token().times(start)
    bound = form.closed(("x",), length).plain
    assert bound is not None
    value = Fraction(0)
    for token in range(length):
        value = slope * value + drive + (start if token == 0 else 0)
        assert value <= bound


def test_products_join_lags_and_refuse_two_states() -> None:
    both = decaying("j", Fraction(1, 2)) * decaying("j", Fraction(1, 2), 1)
    assert both == decaying("j", Fraction(1, 4), 1)
    with pytest.raises(Obstacle, match="multiplied by a state"):
        unknown("x") * unknown("y")
    assert ONE * ZERO == ZERO


def test_a_form_with_a_lag_or_a_state_is_no_number() -> None:
    assert decaying("j", Fraction(1, 2)).plain is None
    assert unknown("x").plain is None
    assert (constant(2) + constant(3)).plain == 5
