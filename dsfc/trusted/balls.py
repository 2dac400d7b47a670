"""Numbers with proven bounds, by fractions alone: exact where the operations are rational.

A real value is an interval of two fractions that holds it; an exact one has equal ends. After a
function that is not rational the ends are rounded outwards to 160 binary digits.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import isqrt

DIGITS = 160
_UNIT = 1 << DIGITS
LARGEST_EXPONENT = 4096
"""Bound on |x| in e^x, so that a witness cannot ask for numbers that do not fit."""


class NotDefined(ArithmeticError):
    """A value does not exist at this point, or its bounds do not say whether it does."""


class Undefined(NotDefined):
    """A value does not exist at this point."""


@dataclass(frozen=True, slots=True)
class Real:
    """A real number between two fractions."""

    low: Fraction
    high: Fraction

    @property
    def exact(self) -> bool:
        """Whether the ends are equal."""
        return self.low is self.high or self.low == self.high

    def __add__(self, other: Real) -> Real:
        if self.exact and other.exact:
            return _at(self.low + other.low)
        return Real(self.low + other.low, self.high + other.high)

    def __neg__(self) -> Real:
        return _at(-self.low) if self.exact else Real(-self.high, -self.low)

    def __sub__(self, other: Real) -> Real:
        return self + -other

    def __mul__(self, other: Real) -> Real:
        if self.exact and other.exact:
            return _at(self.low * other.low)
        ends = [x * y for x in (self.low, self.high) for y in (other.low, other.high)]
        return Real(min(ends), max(ends)).rounded()

    def __truediv__(self, other: Real) -> Real:
        if other.low == 0 == other.high:
            raise Undefined("a denominator is 0")
        if other.low <= 0 <= other.high:
            raise NotDefined("a denominator may be 0")
        if self.exact and other.exact:
            return _at(self.low / other.low)
        return self * Real(1 / other.high, 1 / other.low)

    def rounded(self) -> Real:
        """Returns a value of bounded size around this one; an exact one is itself."""
        if self.exact:
            return self
        return Real(_down(self.low), -_down(-self.high))

    def meets(self, other: Real) -> bool:
        """Returns whether the two may be equal."""
        return self.low <= other.high and other.low <= self.high


def _down(x: Fraction) -> Fraction:
    return Fraction((x.numerator << DIGITS) // x.denominator, _UNIT)


def real(x: Fraction | int) -> Real:
    """Returns an exact number."""
    return _at(Fraction(x))


def _at(x: Fraction) -> Real:
    """An exact number: its ends are one object, which says so at once."""
    return Real(x, x)


def _series(terms: list[Fraction], error: Fraction) -> Real:
    value = sum(terms, Fraction(0))
    return Real(_down(value - error), -_down(-(value + error)))


_FINE = DIGITS + 64
"""Series are summed in integers over 2^this: a step errs by a few units, there are hundreds."""


def _fixed(value: int) -> Real:
    """Returns value / 2^_FINE, which is known to 2^32 units."""
    slack = 1 << 32
    low, high = (value - slack) >> 64, -((-(value + slack)) >> 64)
    return Real(Fraction(low, _UNIT), Fraction(high, _UNIT))


@lru_cache(maxsize=4096)
def _exp_of(x: Fraction) -> Real:
    if abs(x) > LARGEST_EXPONENT:
        raise NotDefined("an exponent is too large")
    if x == 0:
        return real(1)
    halvings = (abs(x.numerator) // x.denominator).bit_length() + 4
    y = _near(x / (1 << halvings))  # |y| ≤ 1/16
    total = term = 1 << _FINE
    k = 0
    while abs(term) > 1:
        k += 1
        term = ((term * y) >> _FINE) // k
        total += term
    # What is left of the series is below its first term, a few units.
    out = _fixed(total)
    for _ in range(halvings):
        out = out * out
    return out


def _near(x: Fraction) -> int:
    return (x.numerator << _FINE) // x.denominator


def exp(x: Real) -> Real:
    """Returns e^x; far below it is between 0 and the smallest that is computed."""
    if x.high < -LARGEST_EXPONENT:
        return Real(Fraction(0), _exp_of(Fraction(-LARGEST_EXPONENT)).high)
    return Real(_exp_of(x.low).low, _exp_of(x.high).high)


@lru_cache(maxsize=4096)
def _log_of(x: Fraction) -> Real:
    if x <= 0:
        raise NotDefined("the logarithm of a number that may not be positive")
    if x == 1:
        return real(0)
    shift = x.numerator.bit_length() - x.denominator.bit_length()
    mantissa = x / Fraction(2) ** shift  # between 1/2 and 2
    out = _atanh2((mantissa - 1) / (mantissa + 1))
    return out + _atanh2(Fraction(1, 3)) * real(shift) if shift else out


def _atanh2(y: Fraction) -> Real:
    """2 artanh y for |y| ≤ 1/3: the logarithm of (1 + y) / (1 - y)."""
    power, total, k = _near(y), 0, 1
    square = (power * power) >> _FINE
    while abs(power) > 1:
        total += (2 * power) // k
        power = (power * square) >> _FINE
        k += 2
    return _fixed(total)


def log(x: Real) -> Real:
    """Returns log x."""
    if x.high <= 0:
        raise Undefined("the logarithm of a number that is not positive")
    return Real(_log_of(x.low).low, _log_of(x.high).high)


def sqrt(x: Real) -> Real:
    """Returns √x."""
    if x.high < 0:
        raise Undefined("the root of a negative number")
    if x.low < 0:
        raise NotDefined("the root of a number that may be negative")
    return Real(_root(x.low).low, _root(x.high).high)


def _root(x: Fraction) -> Real:
    top, bottom = isqrt(x.numerator), isqrt(x.denominator)
    if top * top == x.numerator and bottom * bottom == x.denominator:
        return real(Fraction(top, bottom))
    below = isqrt((x.numerator << (2 * DIGITS)) // x.denominator)
    return Real(Fraction(below, _UNIT), Fraction(below + 1, _UNIT))


def _waves(x: Real) -> tuple[Real, Real]:
    """Cos x and sin x."""
    middle, width = (x.low + x.high) / 2, (x.high - x.low) / 2
    if abs(middle) > LARGEST_EXPONENT:
        raise NotDefined("an angle is too large")
    if x == real(0):
        return real(1), real(0)
    doublings = (abs(middle.numerator) // middle.denominator).bit_length() + 4
    y = _near(middle / (1 << doublings))  # |y| ≤ 1/16
    term, k = 1 << _FINE, 0
    sums = [term, 0]
    while abs(term) > 1:
        k += 1
        term = ((term * y) >> _FINE) // k
        sums[k % 2] += -term if k % 4 >= 2 else term
    cosine, sine = _fixed(sums[0]), _fixed(sums[1])
    for _ in range(doublings):
        cosine, sine = cosine * cosine - sine * sine, real(2) * sine * cosine
    # Both have slope 1 at most.
    wide = Real(-width, width)
    return (cosine + wide).rounded(), (sine + wide).rounded()


def cos(x: Real) -> Real:
    """Returns cos x."""
    return _waves(x)[0]


def sin(x: Real) -> Real:
    """Returns sin x."""
    return _waves(x)[1]


def pi() -> Real:
    """Returns π = 16 arctan 1/5 − 4 arctan 1/239."""
    return real(16) * _arctan(5) - real(4) * _arctan(239)


def _arctan(inverse: int) -> Real:
    term, terms, k = Fraction(1, inverse), [], 1
    while term > Fraction(1, _UNIT):
        terms.append(term / k if k % 4 == 1 else -term / k)
        term, k = term / (inverse * inverse), k + 2
    return _series(terms, abs(term))


def absolute(x: Real) -> Real:
    """Returns |x|."""
    if x.low >= 0:
        return x
    return -x if x.high <= 0 else Real(Fraction(0), max(-x.low, x.high))


def maximum(x: Real, y: Real) -> Real:
    """Returns max(x, y)."""
    return Real(max(x.low, y.low), max(x.high, y.high))


def sign(x: Real) -> Real:
    """Returns 1, 0 or −1."""
    if x.low > 0 or x.high < 0 or x == real(0):
        return real((x.low > 0) - (x.high < 0))
    return Real(Fraction(-1), Fraction(1))


def sigmoid(x: Real) -> Real:
    """Returns 1 / (1 + e^−x)."""
    return real(1) / (real(1) + exp(-x))


def softplus(x: Real) -> Real:
    """Returns log(1 + e^x)."""
    return log(real(1) + exp(x))


def tanh(x: Real) -> Real:
    """Returns 2 σ(2x) − 1."""
    return real(2) * sigmoid(x + x) - real(1)


@dataclass(frozen=True, slots=True)
class Complex:
    """A complex number; what is real has imaginary part exactly 0."""

    re: Real
    im: Real

    @property
    def is_real(self) -> bool:
        """Whether the imaginary part is exactly 0."""
        return not self.im.low and not self.im.high

    def __add__(self, other: Complex) -> Complex:
        return Complex(self.re + other.re, self.im + other.im)

    def __neg__(self) -> Complex:
        return Complex(-self.re, -self.im)

    def __sub__(self, other: Complex) -> Complex:
        return self + -other

    def __mul__(self, other: Complex) -> Complex:
        if self.is_real and other.is_real:
            return Complex(self.re * other.re, self.im)
        return Complex(
            self.re * other.re - self.im * other.im, self.re * other.im + self.im * other.re
        )

    def __truediv__(self, other: Complex) -> Complex:
        if other.is_real:
            return Complex(self.re / other.re, self.im / other.re)
        size = other.re * other.re + other.im * other.im
        top = self * Complex(other.re, -other.im)
        return Complex(top.re / size, top.im / size)

    def meets(self, other: Complex) -> bool:
        """Returns whether the two may be equal."""
        return self.re.meets(other.re) and self.im.meets(other.im)
