"""Quotients at numbers modulo a prime: what does not hold there does not hold.

A map from polynomials over the integers and i to the numbers modulo a prime keeps sums and
products. So an identity that fails for the images is none, and to see that takes no polynomials.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from hashlib import blake2b

from dsfc.trusted.generator_names import lags
from dsfc.trusted.polynomial import IMAGINARY, Polynomial, Quotient

PRIME = 2**61 - 31
"""A prime modulo which -1 is a square."""

ROOT = pow(7, (PRIME - 1) // 4, PRIME)
"""A number whose square is -1 modulo the prime."""

Sum = list[tuple[str, Quotient]]
"""Entries of a map, and what each is multiplied by."""


@cache
def _drawn(name: str, which: int = 0) -> int:
    """A number for a generator, the same in every process; others for another `which`."""
    if name == IMAGINARY:
        return ROOT
    text = f"{which} {name}".encode()
    return int.from_bytes(blake2b(text, digest_size=7).digest(), "big") + 2


def may_be_linear(
    value: Quotient, leaves: frozenset[str], sum_of: Callable[[str], Sum | None]
) -> bool:
    """Returns False only where a value is no sum of leaves times what is of no token.

    Args:
        value: in generators, results of maps among them.
        leaves: generators of tokens.
        sum_of: what the result of a map is, None of other generators.
    """

    def at(which: int) -> Callable[[str], int]:
        @cache
        def number(g: str) -> int:
            entries = sum_of(g)
            if entries is not None:
                return sum(_drawn(name) * _at(q, number) for name, q in entries) % PRIME
            if g in leaves:
                return _drawn(g) << which
            return _drawn(g, which if lags(frozenset({g})) else 0)

        return number

    try:
        once, twice = (_at(value, at(which)) for which in (0, 1))
    except ValueError:
        return True
    return (twice - 2 * once) % PRIME == 0


def _at(q: Quotient, number: Callable[[str], int]) -> int:
    """A value modulo the prime; a ValueError where it is divided by 0 there."""
    out = _polynomial(q.num, number)
    for base, exponent in q.den.items():
        out = out * pow(_polynomial(base, number), -exponent, PRIME) % PRIME
    return out


def _polynomial(p: Polynomial, number: Callable[[str], int]) -> int:
    powers = {name: number(name) for name in p.names}
    out = 0
    for m, c in p.terms.items():
        value = c.numerator * pow(c.denominator, -1, PRIME) if c.denominator != 1 else c.numerator
        for g, e in m:
            value = value * (powers[g] if e == 1 else pow(powers[g], e, PRIME)) % PRIME
        out += value
    return out % PRIME
