"""Powers of roots of numbers: e^{(log 7)/2} twice is 7.

Numbers at a point are quotients over logarithms of numbers and their exponentials. An exponential
of a fraction of one logarithm is a root, and a power of it that is none is put in its place.
"""

from __future__ import annotations

from fractions import Fraction

from dsfc.trusted.polynomial import ZERO, Polynomial, Quotient, generator, number
from dsfc.trusted.symbols import Symbols


def without_powers(q: Quotient, symbols: Symbols) -> Quotient:
    """Returns a number with d-th roots to powers from 0 to d - 1 alone.

    Args:
        q: a quotient of numbers.
        symbols: what its generators stand for.
    """
    roots = {name: root for name in q.names if (root := _root(name, symbols)) is not None}
    if not roots:
        return q
    out = _reduced(q.num, roots)
    for base, exponent in q.den.items():
        out = out / _reduced(base, roots).power(exponent)
    return out


def _root(name: str, symbols: Symbols) -> tuple[Fraction, int] | None:
    """The number p and the degree d of a generator that is e^{(log p) / d}, else None."""
    head, args = symbols.defined.get(name, ("", ()))
    if head != "exp" or args[0].den or len(args[0].num.terms) != 1:
        return None
    ((m, c),) = args[0].num.terms.items()
    if len(m) != 1 or m[0][1] != 1 or c.numerator != 1:
        return None
    inner, arguments = symbols.defined.get(m[0][0], ("", ()))
    value = arguments[0].number if inner == "log" else None
    return (value, c.denominator) if value is not None and value > 0 else None


def _reduced(p: Polynomial, roots: dict[str, tuple[Fraction, int]]) -> Quotient:
    out = ZERO
    for m, c in p.terms.items():
        term = number(c)
        for name, exponent in m:
            base, degree = roots.get(name, (Fraction(1), 0))
            whole, rest = divmod(exponent, degree) if degree else (0, exponent)
            term = term * number(base**whole) * Quotient(generator(name)).power(rest)
        out = out + term
    return out
