"""Laws of functions that look at signs: |x|, relu, max, min, sign and the square root.

    |x|          Π |factor|, each a generator r with r² = x²; x or -x where the sign is known
    |z|          a generator r with r² = z z̄, or the exponential of a real part
    relu x       (x + |x|) / 2
    max(x, y)    (x + y + |x - y|) / 2;  min(x, y) with the other sign
    sign x       Π sign(factor), where signs that are known are 1 or -1, and of a real factor an
                 even power is one; that of a complex one is z / |z|
    √x           Π √factor over factors that are not negative, |g| for g², and the root of the rest

A factor that is not negative comes out of a root of whatever is left: with the complex root of a
negative number both sides are equal, so what has no value among real numbers loses nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING

from dsfc.trusted.polynomial import (
    HALF,
    IMAGINARY,
    MINUS_ONE,
    ONE,
    POLYNOMIAL_ONE,
    ZERO,
    Polynomial,
    Quotient,
    generator,
    number,
)

if TYPE_CHECKING:
    from dsfc.trusted.symbols import Symbols


def factors(q: Quotient) -> tuple[Fraction, list[tuple[Polynomial, int]]]:
    """Returns a value other than 0 as a number times powers: generators, then sums."""
    simple, rest = q.num.split()
    ((m, c),) = simple.terms.items()
    parts = [(generator(name), exponent) for name, exponent in m]
    if rest != POLYNOMIAL_ONE:
        parts.append((rest, 1))
    return c, parts + [(base, -exponent) for base, exponent in q.den.items()]


def absolute(s: Symbols, q: Quotient) -> Quotient:
    """Returns |q|."""
    if not q.num:
        return ZERO
    c, parts = factors(q)
    out = number(abs(c))
    for p, exponent in parts:
        out = out * _size(s, p).power(exponent)
    return out


def _size(s: Symbols, p: Polynomial) -> Quotient:
    q = Quotient(p)
    if p == generator(IMAGINARY):
        return ONE
    bar = s.conjugate(q)
    if s.is_real(q):
        if s.never_negative(q) or s.never_negative(-q):
            return q if s.never_negative(q) else -q
        return s.root("abs", (q,), 2, q * q, real=True)
    (name, *others) = p.names
    exponent = s.exponent(name)
    if p == generator(name) and not others and exponent is not None:
        return s.exp((exponent + s.conjugate(exponent)) * HALF)
    # |z| is |z̄|: one of the two names is that of both.
    twin = bar.num if len(p.terms) == 1 else bar.num.split()[1]
    if not bar.den and (twin == bar.num or twin == -bar.num) and twin.text < p.text:
        return _size(s, twin)
    return s.root("abs", (q,), 2, q * bar, real=True)


def sign(s: Symbols, q: Quotient) -> Quotient:
    """Returns the sign of a value: 1, 0 or -1 of a real one, and z / |z| of a complex one."""
    if not q.num:
        return ZERO
    c, parts = factors(q)
    out = ONE if c > 0 else MINUS_ONE
    for p, exponent in parts:
        part = Quotient(p)
        if s.positive(-part):
            out = -out if exponent % 2 else out
        elif not s.positive(part):
            real = not part - s.conjugate(part)
            known = s.opaque("sign", (part,), real, positive=False)
            out = out * known.power(exponent if not real else 1 if exponent % 2 else 2)
    return out


def larger(s: Symbols, x: Quotient, y: Quotient) -> Quotient:
    """Returns the larger of two real values."""
    return (x + y + absolute(s, x - y)) * HALF


def square_root(s: Symbols, q: Quotient, real: bool) -> Quotient:
    """Returns the principal square root of a value, which is real if that of real numbers is."""
    if not q.num:
        return ZERO
    c, parts = factors(q)
    out, left = s.power(number(abs(c)), HALF), ONE if c > 0 else MINUS_ONE
    for p, exponent in parts:
        part, bar = Quotient(p), s.conjugate(Quotient(p))
        if not bar.den and p != bar.num and (bar.num, exponent) in parts:
            # z z̄ is |z|², of which each of the two is one half.
            out = out * absolute(s, part).power(exponent) if p.text < bar.num.text else out
        elif s.positive(part):
            out = out * s.exp(s.log(part) * HALF * number(exponent))
        elif s.never_negative(part):
            out = out * s.root("sqrt", (part,), 2, part, real).power(exponent)
        elif s.is_real(part):
            out = out * absolute(s, part).power(exponent // 2)
            left = left * part.power(exponent % 2)
        else:
            left = left * part.power(exponent)
    return out if left.number == 1 else out * s.root("sqrt", (left,), 2, left, real)


def root(s: Symbols, q: Quotient, degree: int) -> Quotient:
    """Returns the principal root of a value, of degree 2 or more."""
    if degree == 2:
        return square_root(s, q, s.is_real(q))
    exponent = number(Fraction(1, degree))
    return s.root("pow", (q, exponent), degree, q, s.is_real(q))


LAWS: dict[str, Callable[..., Quotient]] = {
    "abs": absolute,
    "relu": lambda s, x: larger(s, x, ZERO),
    "max": larger,
    "min": lambda s, x, y: -larger(s, -x, -y),
    "sign": sign,
}
"""Laws of what holds no states."""
