"""Powers of numbers: folded exactly where they stay short, and never worked out where not."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsfc.expr.arithmetic import LONGEST, exact_power, is_long, num, power, steepness
from dsfc.expr.tree import Num, Pow

NUMBERS = st.fractions(max_denominator=50).filter(bool)


@given(NUMBERS, st.integers(-64, 64).filter(lambda e: e != 1))
def test_a_short_power_is_its_number(base: Fraction, exponent: int) -> None:
    found = power(num(base), num(exponent))
    if isinstance(found, Num):
        assert found.value == base**exponent
        assert abs(exponent) <= 1 or not is_long(found.value)
    else:
        assert found == Pow(num(base), num(exponent))


def test_a_long_power_stays_a_power() -> None:
    assert isinstance(power(num(2), num(LONGEST // 2)), Num)
    assert isinstance(power(num(9), num(9**9)), Pow)
    with pytest.raises(OverflowError):
        exact_power(Fraction(9), 9**9)


def test_powers_of_powers_multiply() -> None:
    nested = power(power(num(3**80), num(60)), num(60))
    assert steepness(nested, {}) == 3600
    assert steepness(num(3), {}) == 1
