"""Generators of which a power is known: |x|² = x², √p² = p, (e^{x/2})² = e^x.

Let D be the Laurent polynomials over the other generators, and A what D becomes with these roots:
a free D-module, whose basis are the products of roots with exponents below the known powers, and a
ring that takes each generator to the function it names. A is no field, and may have zero divisors,
as (|x| - x) (|x| + x) = 0. So what one divides by in a proof must be `regular`: it is one factor of
something other than 0 in a part of A that has no zero divisors.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from dsfc.trusted.generator_names import LONGEST_LAG, lags, shifted
from dsfc.trusted.polynomial import IMAGINARY, POLYNOMIAL_ZERO, Polynomial, Quotient, generator

Power = tuple[int, Polynomial]
"""An exponent from 2 on, and what this power of a root is."""


class Roots:
    """The roots of a claim, at every token."""

    def __init__(self) -> None:
        """Knows none."""
        self._known: dict[str, Power] = {}
        self._at: dict[str, Power | None] = {}

    def add(self, name: str, exponent: int, power: Quotient) -> None:
        """Takes a root; one whose power is no polynomial over the integers is left free."""
        terms = power.num.terms
        whole = all(c.denominator == 1 and all(e > 0 for _, e in m) for m, c in terms.items())
        if terms and whole and not power.den:
            self._known[name] = exponent, power.num
            self._at.clear()

    def of(self, name: str) -> Power | None:
        """Returns the known power of a generator, which may be one of another token."""
        if not self._known:
            return None
        if name not in self._at:
            self._at[name] = self._shifted(name)
        return self._at[name]

    def _shifted(self, name: str) -> Power | None:
        for by in range(1 + min(lags(frozenset({name})), default=0)):
            known = self._known.get(shifted(name, -by))
            if known is not None:
                return known[0], known[1].renamed(partial(shifted, by=by))
        # A root that was met at an earlier token only.
        for by in range(1, LONGEST_LAG - max(lags(frozenset({name})), default=LONGEST_LAG) + 1):
            known = self._known.get(shifted(name, by))
            if known is not None:
                return known[0], known[1].renamed(partial(shifted, by=-by))
        return None

    def reduced(self, q: Quotient) -> Quotient:
        """Returns a value with each root to exponents from 0 to below its known power."""
        while self._known:
            high = {
                n for p in (q.num, *q.den) for m in p.terms for n, e in m if self._is_high(n, e)
            }
            if not high:
                break
            out = self._replaced(q.num, high)
            for base, exponent in q.den.items():
                out = out / self._replaced(base, high).power(exponent)
            q = out
        return q

    def _is_high(self, name: str, exponent: int) -> bool:
        known = self.of(name)
        return known is not None and not 0 <= exponent < known[0]

    def _replaced(self, p: Polynomial, high: set[str]) -> Quotient:
        if not p.names & high:
            return Quotient(p)
        out = Quotient(POLYNOMIAL_ZERO)
        for m, c in p.ordered:
            part = Quotient(Polynomial({tuple(f for f in m if f[0] not in high): c}))
            for name, exponent in m:
                known = self.of(name) if name in high else None
                if known is not None:
                    whole, rest = divmod(exponent, known[0])
                    part = part * Quotient(known[1]).power(whole)
                    part = part * Quotient(generator(name)).power(rest)
            out = out + part
        return out

    def closed(self, names: Iterable[str]) -> frozenset[str]:
        """Returns names with those that the powers of their roots hold."""
        out, left = set[str](), list(names)
        while left:
            name = left.pop()
            if name not in out:
                out.add(name)
                known = self.of(name)
                left += known[1].names if known is not None else ()
        return frozenset(out)

    def regular(self, p: Polynomial) -> bool:
        """Returns whether a polynomial is known to be no zero divisor, and not 0.

        A root whose power is a generator that no other root has for a power is as free as that is;
        i is none, and a number is no generator. The others are taken away, the outer ones first, by
        what p is with their signs changed.
        """
        out = self.reduced(Quotient(p))
        bound = self._bound(out.names)
        while left := sorted(bound & out.num.names):
            outer = next(r for r in left if not any(r in self._inside(s) for s in left if s != r))
            known = self.of(outer)
            if known is None or known[0] != 2:
                return False
            changed = out.substituted({outer: -Quotient(generator(outer))})
            out = self.reduced(Quotient(out.num) * Quotient(changed.num))
        return bool(out.num)

    def _inside(self, root: str) -> frozenset[str]:
        known = self.of(root)
        return self.closed(known[1].names) if known is not None else frozenset()

    def _bound(self, names: Iterable[str]) -> frozenset[str]:
        """The roots among some names, and in their powers, that are not free."""
        powers = {g: known[1] for g in self.closed(names) if (known := self.of(g)) is not None}
        bound: set[str] = set()
        while True:
            more = {
                g
                for g, p in powers.items()
                if g not in bound
                and (
                    p.names & bound
                    or p.names & {IMAGINARY}
                    or not any(p == generator(name) for name in p.names)
                    or sum(other == p for other in powers.values()) > 1
                )
            }
            if not more:
                return frozenset(bound)
            bound |= more


NO_ROOTS = Roots()
"""Where nothing is known of any generator."""
