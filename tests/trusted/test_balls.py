"""Numbers with bounds: the bounds hold, and are tight."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsfc.trusted import balls
from dsfc.trusted.balls import Complex, NotDefined, Real, real

mpmath.mp.prec = 300
RATIONALS = st.fractions(min_value=-30, max_value=30, max_denominator=50)
POSITIVE = st.fractions(min_value=Fraction(1, 50), max_value=1000, max_denominator=50)
SMALL = st.fractions(min_value=-2, max_value=2, max_denominator=4)
TIGHT = Fraction(1, 2**100)


def holds(found: Real, value: mpmath.mpf) -> bool:
    sign, mantissa, exponent, _ = value._mpf_
    exact = (-1) ** sign * Fraction(int(mantissa)) * Fraction(2) ** exponent
    # The judge itself errs by one unit in its last place.
    slack = abs(exact) * Fraction(1, 2**290)
    return found.low - slack <= exact <= found.high + slack


def mp(x: Fraction) -> mpmath.mpf:
    return mpmath.mpf(x.numerator) / x.denominator


@pytest.mark.share(2)
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


@st.composite
def intervals(draw: st.DrawFn) -> Real:
    low, high = sorted((draw(SMALL), draw(SMALL)))
    return Real(low, high)


@given(intervals(), intervals())
def test_an_operation_on_intervals_gives_the_least_that_holds_all_values(x: Real, y: Real) -> None:
    """What is monotone in each argument has its extremes at the ends."""
    ends = [(a, b) for a in (x.low, x.high) for b in (y.low, y.high)]
    for found, values in (
        (x + y, [a + b for a, b in ends]),
        (x - y, [a - b for a, b in ends]),
        (-x, [-x.low, -x.high]),
        (balls.maximum(x, y), [max(a, b) for a, b in ends]),
        (balls.absolute(x), [abs(x.low), abs(x.high), *([0] if x.low <= 0 <= x.high else [])]),
    ):
        assert (found.low, found.high) == (min(values), max(values))
    assert x.meets(y) is (max(x.low, y.low) <= min(x.high, y.high))
    assert x.exact is (x.low == x.high)
    assert_tight(x * y, [a * b for a, b in ends])
    if y.low > 0 or y.high < 0:
        assert_tight(x / y, [a / b for a, b in ends])
    else:
        with pytest.raises(NotDefined) as caught:
            x / y
        assert isinstance(caught.value, balls.Undefined) is (y == real(0))


def test_bounds_of_what_is_computed_have_a_bounded_size() -> None:
    """Else numbers would have twice the digits after each product."""
    third = Real(Fraction(1, 3), Fraction(2, 3))
    other = Real(Fraction(3), Fraction(7))
    for found in (third * third, third * real(Fraction(1, 7)), third / other):
        assert 2**160 % found.low.denominator == 0 and 2**160 % found.high.denominator == 0
        assert found.rounded() == found
    assert (real(Fraction(1, 3)) * real(Fraction(1, 7))).low == Fraction(1, 21)


def assert_tight(found: Real, values: list[Fraction]) -> None:
    """The least interval of its values, rounded outwards to 160 binary digits twice at most."""
    ulp = Fraction(64, 2**160)  # a value is below 32, so is what its rounding is multiplied by
    assert min(values) - ulp <= found.low <= min(values)
    assert max(values) <= found.high <= max(values) + ulp


@given(intervals())
def test_the_sign_of_an_interval_is_known_where_all_of_it_has_one(x: Real) -> None:
    one = {(v > 0) - (v < 0) for v in (x.low, x.high, *([0] if x.low <= 0 <= x.high else []))}
    found = balls.sign(x)
    assert (found.low, found.high) == ((min(one), max(one)) if len(one) == 1 else (-1, 1))


@pytest.mark.parametrize(
    ("ours", "theirs", "points"),
    [
        (balls.exp, mpmath.exp, (4096, -4096, Fraction(1, 10**30), Fraction(-7, 10**9), 17)),
        (balls.cos, mpmath.cos, (4096, -4096, Fraction(1, 10**30), Fraction(-7, 10**9), 17)),
        (balls.sin, mpmath.sin, (4096, -4096, Fraction(1, 10**30), Fraction(-7, 10**9), 17)),
        (balls.log, mpmath.log, (10**40, Fraction(1, 10**40), 1 + Fraction(1, 10**20), 2, 3)),
        (balls.sqrt, mpmath.sqrt, (10**40 + 1, Fraction(1, 10**41), 2, Fraction(9, 8), 0)),
    ],
)
def test_bounds_hold_far_out_and_near(ours, theirs, points: tuple[Fraction, ...]) -> None:
    for x in map(Fraction, points):
        found = ours(real(x))
        assert holds(found, theirs(mp(x)))
        assert found.high - found.low <= TIGHT * max(1, abs(found.high))


@given(*[st.fractions(-9, 9, max_denominator=9)] * 4)
def test_complex_numbers_are_a_field(a: Fraction, b: Fraction, c: Fraction, d: Fraction) -> None:
    x, y = Complex(real(a), real(b)), Complex(real(c), real(d))
    assert x + y == Complex(real(a + c), real(b + d)) and -x == Complex(real(-a), real(-b))
    assert x - y == Complex(real(a - c), real(b - d))
    assert x * y == Complex(real(a * c - b * d), real(a * d + b * c))
    assert x.meets(y) is (x == y) and x.is_real is (b == 0)
    if c or d:
        assert x / y * y == x


def test_bounds_of_a_function_are_those_of_both_ends() -> None:
    wide = Real(Fraction(1, 4), Fraction(9, 4))
    for ours in (balls.exp, balls.log, balls.sqrt):
        ends = [ours(real(x)) for x in (wide.low, wide.high)]
        assert ours(wide) == Real(ends[0].low, ends[1].high)
    for ours, theirs in ((balls.cos, mpmath.cos), (balls.sin, mpmath.sin)):
        found = ours(wide)
        middle = theirs(mpmath.mpf(5) / 4)
        # They have slope 1 at most: as far from the middle as the argument.
        assert abs(float(found.high - found.low) - 2) < 1e-12
        assert abs(float(found.high + found.low) / 2 - middle) < 1e-12
    assert balls.sqrt(Real(Fraction(0), Fraction(4))) == Real(Fraction(0), Fraction(2))


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
        lambda: balls.log(Real(Fraction(0), Fraction(1))),
        lambda: balls.sqrt(Real(Fraction(-1), Fraction(1))),
        lambda: balls.sqrt(real(-1)),
        lambda: balls.exp(real(balls.LARGEST_EXPONENT + 1)),
        lambda: balls.cos(real(balls.LARGEST_EXPONENT + 1)),
        lambda: balls.sin(real(-balls.LARGEST_EXPONENT - 1)),
    ],
)
def test_what_has_no_value_is_said(undefined) -> None:
    with pytest.raises(NotDefined):
        undefined()


def test_an_exponential_far_below_lies_between_zero_and_the_smallest() -> None:
    smallest = balls.exp(real(-balls.LARGEST_EXPONENT)).high
    far = balls.exp(real(-(2**100)))
    assert far == Real(Fraction(0), smallest) and not far.exact


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
