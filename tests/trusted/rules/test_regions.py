"""Regions of numbers."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from dsfc.expr.interval import UNIT, Interval
from dsfc.trusted.balls import Complex, Real, real
from dsfc.trusted.rules.regions import Region

ENDS = st.integers(-3, 3)


@st.composite
def intervals(draw: st.DrawFn) -> Interval:
    low, high = sorted((draw(ENDS), draw(ENDS)))
    closed = low == high
    return Interval(float(low), float(high), draw(st.booleans()) and not closed,
                    draw(st.booleans()) and not closed)  # fmt: skip


HALVES = [Fraction(k, 4) for k in range(-16, 17)]


@given(intervals(), intervals())
def test_apart_is_to_have_no_number_in_common(a: Interval, b: Interval) -> None:
    both = any(float(x) in a and float(x) in b for x in HALVES)
    assert Region(True, a).disjoint(Region(True, b)) is not both


@given(intervals(), ENDS, st.integers(0, 2), ENDS)
def test_what_is_excluded_is_no_number_of_a_region(
    a: Interval, re: int, wide: int, im: int
) -> None:
    value = Complex(Real(Fraction(re), Fraction(re + wide)), real(im))
    inside = [x for x in HALVES if re <= x <= re + wide and float(x) in a]
    assert Region(True, a).excludes(value) is (im != 0 or not inside)


def test_moduli_of_complex_numbers() -> None:
    disc = Region(False, UNIT)
    assert disc.excludes(Complex(real(Fraction(3, 5)), real(Fraction(4, 5))))
    assert not disc.excludes(Complex(real(Fraction(3, 5)), real(Fraction(3, 5))))
    for re, im in ((Fraction(3, 2), Fraction(1, 10)), (Fraction(1, 10), Fraction(3, 2))):
        for value in (Complex(real(re), real(im)), Complex(real(-re), real(-im))):
            assert disc.excludes(value)
    assert disc.excludes(Complex(real(-2), real(0)))
    assert not disc.excludes(Complex(real(0), real(Fraction(1, 2))))
    assert disc.disjoint(Region(True, Interval(-2.0, -1.0)))
    inside = Region(True, Interval(-0.5, -0.5))
    assert not disc.disjoint(inside) and not inside.disjoint(disc)
