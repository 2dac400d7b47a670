"""Numbers with bounds: the bounds hold, and are tight."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsfc.check_proof import balls
from dsfc.check_proof.balls import Complex, NotDefined, Real, real

mpmath.mp.prec = 300
RATIONALS = st.fractions(min_value=-30, max_value=30, max_denominator=50)
POSITIVE = st.fractions(min_value=Fraction(1, 50), max_value=1000, max_denominator=50)
TIGHT = Fraction(1, 2**100)


def holds(found: Real, value: mpmath.mpf) -> bool:
    sign, mantissa, exponent, _ = value._mpf_
    exact = (-1) ** sign * Fraction(int(mantissa)) * Fraction(2) ** exponent
    # The judge itself errs by one unit in its last place.
    slack = abs(exact) * Fraction(1, 2**290)
    return found.low - slack <= exact <= found.high + slack


def mp(x: Fraction) -> mpmath.mpf:
    return mpmath.mpf(x.numerator) / x.denominator


@pytest.mark.parametrize(
    "ours, theirs",
    [
        pytest.param(balls.exp, mpmath.exp, marks=pytest.mark.ci),
        (balls.cos, mpmath.cos),
        (balls.sin, mpmath.sin),
        (balls.tanh, mpmath.tanh),
        (balls.sigmoid, lambda x: 1 / (1 + mpmath.exp(-x))),
        (balls.softplus, lambda x: mpmath.log(1 + mpmath.exp(x))),
    ],
)
@given(RATIONALS)
def test_bounds_hold_everywhere(ours, theirs, x: Fraction) -> None:
    found = ours(real(x))
    assert holds(found, theirs(mp(x)))
    assert found.high - found.low <= TIGHT * max(1, abs(found.high))


@pytest.mark.parametrize("ours, theirs", [(balls.log, mpmath.log), (balls.sqrt, mpmath.sqrt)])
@given(POSITIVE)
def test_bounds_hold_where_positive(ours, theirs, x: Fraction) -> None:
    found = ours(real(x))
    assert holds(found, theirs(mp(x)))
    assert found.high - found.low <= TIGHT


@given(RATIONALS, RATIONALS, RATIONALS)
def test_rational_operations_are_exact(x: Fraction, y: Fraction, z: Fraction) -> None:
    assert real(x) * real(y) + real(z) == real(x * y + z)
    if z:
        assert real(x) / real(z) == real(x / z)


@given(RATIONALS, RATIONALS, st.fractions(0, 1, max_denominator=9))
def test_intervals_hold_what_their_members_give(x: Fraction, y: Fraction, w: Fraction) -> None:
    wide = Real(x, x + w)
    for inside in (x, x + w / 3, x + w):
        for ours in (balls.exp, balls.sin, balls.cos, balls.absolute):
            point, whole = ours(real(inside)), ours(wide)
            assert whole.low <= point.high and point.low <= whole.high
        product = wide * real(y)
        assert product.low <= inside * y <= product.high
        if y:
            quotient = wide / real(y)
            assert quotient.low <= inside / y <= quotient.high


def test_exact_values_stay_exact() -> None:
    assert balls.exp(real(0)) == real(1)
    assert balls.log(real(1)) == real(0)
    assert balls.sqrt(real(Fraction(9, 4))) == real(Fraction(3, 2))
    assert balls.cos(real(0)) == real(1) and balls.sin(real(0)) == real(0)


def test_pi() -> None:
    assert holds(balls.pi(), +mpmath.pi)


@pytest.mark.parametrize(
    "undefined",
    [
        lambda: real(1) / Real(Fraction(-1), Fraction(1)),
        lambda: balls.log(real(0)),
        lambda: balls.log(Real(Fraction(-1), Fraction(1))),
        lambda: balls.sqrt(real(-1)),
        lambda: balls.exp(real(balls.LARGEST_EXPONENT + 1)),
        lambda: balls.cos(real(balls.LARGEST_EXPONENT + 1)),
    ],
)
def test_what_has_no_value_is_said(undefined) -> None:
    with pytest.raises(NotDefined):
        undefined()


def test_complex_numbers_have_two_parts() -> None:
    for im in (Real(Fraction(0), Fraction(1)), Real(Fraction(-1), Fraction(0))):
        assert not Complex(real(1), im).is_real
    zero, i = Complex(real(0), real(0)), Complex(real(0), real(1))
    assert zero.is_real and not zero.meets(i) and not i.meets(Complex(real(1), real(1)))


def test_meeting_is_symmetric_and_touching_counts() -> None:
    a, b = Real(Fraction(0), Fraction(1)), Real(Fraction(1), Fraction(2))
    assert a.meets(b) and b.meets(a)
    assert not a.meets(real(Fraction(3, 2)))
    assert math.isfinite(float(a.low))
