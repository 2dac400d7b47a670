"""Exact sparse polynomials over the integers, by FLINT, or by SymPy where FLINT is not installed.

Closure needs few operations: to make a polynomial from its terms, to list and to count them, to
add, to multiply, the greatest common divisor, and the exact quotient; conditions need the factors
too. Both libraries stand behind them, and the tests hold them against each other. The order of
terms is lexicographic in the given names, so nothing depends on the library.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any, Protocol

Exponents = tuple[int, ...]
"""The exponent of each name of the ring."""

Element = Any
"""A polynomial of the library; `+`, `-` and `*` work on it, and it is false where it is 0."""


class Ring(Protocol):
    """Polynomials in fixed names."""

    names: tuple[str, ...]

    def element(self, terms: Mapping[Exponents, int]) -> Element:
        """Returns the polynomial with these terms."""

    def terms(self, p: Element) -> dict[Exponents, int]:
        """Returns its terms, those of coefficient 0 left out."""

    def length(self, p: Element) -> int:
        """Returns how many terms it has."""

    def degrees(self, p: Element) -> Exponents:
        """Returns the highest exponent of each name; 0 of all where p is 0."""

    def gcd(self, p: Element, q: Element) -> Element:
        """Returns the greatest common divisor, its leading coefficient positive."""

    def quotient(self, p: Element, q: Element) -> Element:
        """Returns p / q, which the caller knows to be exact."""

    def factors(self, p: Element) -> list[Element]:
        """Returns the irreducible factors of p, each once, numbers left out.

        Their leading coefficients are positive.
        """


class FlintRing:
    """Polynomials of python-flint."""

    def __init__(self, names: tuple[str, ...]) -> None:
        """Makes the ring of these names."""
        from flint import Ordering, fmpz_mpoly_ctx

        self.names = names
        # FLINT wants identifiers; ours have brackets.
        plain = tuple(f"x{k}" for k in range(len(names)))
        self._context = fmpz_mpoly_ctx.get(plain, Ordering.lex)

    def element(self, terms: Mapping[Exponents, int]) -> Element:
        """Returns the polynomial with these terms."""
        return self._context.from_dict(dict(terms))

    def terms(self, p: Element) -> dict[Exponents, int]:
        """Returns its terms."""
        return {tuple(map(int, m)): int(c) for m, c in p.to_dict().items()}

    def length(self, p: Element) -> int:
        """Returns how many terms it has."""
        return len(p)

    def degrees(self, p: Element) -> Exponents:
        """Returns the highest exponent of each name."""
        return tuple(map(int, p.degrees())) if p else (0,) * len(self.names)

    def gcd(self, p: Element, q: Element) -> Element:
        """Returns the greatest common divisor."""
        out = p.gcd(q)
        return -out if out and out.leading_coefficient() < 0 else out

    def quotient(self, p: Element, q: Element) -> Element:
        """Returns p / q."""
        out, rest = divmod(p, q)
        if rest:
            raise ArithmeticError("the quotient is not exact")
        return out

    def factors(self, p: Element) -> list[Element]:
        """Returns the different irreducible factors of p."""
        return [-f if f.leading_coefficient() < 0 else f for f, _ in p.factor()[1]]


class SympyRing:
    """Polynomials of SymPy's sparse rings."""

    def __init__(self, names: tuple[str, ...]) -> None:
        """Makes the ring of these names."""
        from dsfc.expr.sympy_bridge import sparse_ring

        self.names = names
        self._ring = sparse_ring(len(names))

    def element(self, terms: Mapping[Exponents, int]) -> Element:
        """Returns the polynomial with these terms."""
        return self._ring.from_dict({m: self._ring.domain(c) for m, c in terms.items() if c})

    def terms(self, p: Element) -> dict[Exponents, int]:
        """Returns its terms."""
        return {tuple(map(int, m)): int(c) for m, c in p.terms() if c}

    def length(self, p: Element) -> int:
        """Returns how many terms it has."""
        return len(p)

    def degrees(self, p: Element) -> Exponents:
        """Returns the highest exponent of each name."""
        return tuple(map(int, p.degrees())) if p else (0,) * len(self.names)

    def gcd(self, p: Element, q: Element) -> Element:
        """Returns the greatest common divisor."""
        out = p.gcd(q)
        return -out if out and out.LC < 0 else out

    def quotient(self, p: Element, q: Element) -> Element:
        """Returns p / q."""
        out, rest = p.div(q)
        if rest:
            raise ArithmeticError("the quotient is not exact")
        return out

    def factors(self, p: Element) -> list[Element]:
        """Returns the different irreducible factors of p."""
        return [-f if f.LC < 0 else f for f, _ in p.factor_list()[1]]


def ring(names: tuple[str, ...]) -> Ring:
    """Returns the ring of polynomials in these names, by FLINT where it is installed."""
    return FlintRing(names) if find_spec("flint") else SympyRing(names)
