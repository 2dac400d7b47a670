"""Polynomials c_k with Σ c_k f_k free of unknowns, by taking the unknowns away one by one.

An equation of the least degree in an unknown divides the others, what is divided being multiplied
by its leading coefficient first. Factors that are known not to be 0 are left out as soon as they
show up, and come back in the cofactors. So a chain of equations, each of which gives one unknown by
those before, takes few steps, whatever its numbers are. Nothing here is trusted: what is found is
multiplied out by the kernel.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

from dsfc.prover.field import Element, Exponents, Ring, ring
from dsfc.trusted.polynomial import IMAGINARY, Monomial, Polynomial, TooLarge, unit

LONGEST = 80
"""Terms of an equation."""
TERMS = 400
"""Terms of one polynomial."""
COFACTOR = 3_000
"""Terms of one cofactor."""
FACTORED, FACTOR = 60, 30
"""Terms of a polynomial whose factors are looked for, and of a factor that may be left out."""
STEPS = 60
"""Divisions of one search."""


@dataclass(frozen=True, slots=True)
class _Equation:
    """p times a factor that is not 0 is the sum over the cofactors."""

    p: Element
    factor: Element
    cofactors: Mapping[int, Element]


def eliminated(
    polynomials: Sequence[Polynomial],
    constants: frozenset[str],
    nonzero: Callable[[Polynomial], bool],
    shared: bool = False,
) -> Iterator[Mapping[int, Polynomial]]:
    """Yields cofactors, by position, of combinations that are free of unknowns and not 0.

    Args:
        polynomials: polynomials f_k, without negative exponents.
        constants: generators that are no unknowns.
        nonzero: whether a polynomial is known not to be 0.
        shared: whether unknowns that one equation alone holds are taken away last, as the equation
            goes with them, and equations stay that say that an unknown is not 0.
    """
    names = tuple(sorted(frozenset[str]().union(*(p.names for p in polynomials))))
    search = _Search(names, constants, nonzero, shared)
    for cofactors in search.found([search.element(p) for p in polynomials]):
        yield {k: search.polynomial(c) for k, c in cofactors.items() if c}


class _Search:
    """The polynomials of one system of equations."""

    def __init__(
        self,
        names: tuple[str, ...],
        constants: frozenset[str],
        nonzero: Callable[[Polynomial], bool],
        shared: bool,
    ) -> None:
        self.ring: Ring = ring(names)
        self.unknowns = [k for k, g in enumerate(names) if g not in {*constants, IMAGINARY}]
        self.one = self.ring.element({(0,) * len(names): 1})
        self._nonzero, self._shared = nonzero, shared
        self._known: dict[str, bool] = {}

    def element(self, p: Polynomial) -> tuple[Element, int]:
        """Returns a multiple of a polynomial by a number, and the number."""
        scale = lcm(*(c.denominator for c in p.terms.values()))
        terms = {
            tuple(dict(m).get(g, 0) for g in self.ring.names): int(c * scale)
            for m, c in p.terms.items()
        }
        return self.ring.element(terms), scale

    def polynomial(self, p: Element) -> Polynomial:
        """Returns a polynomial by names."""
        out: dict[Monomial, Fraction] = {}
        for m, c in self.ring.terms(p).items():
            # The ring knows nothing of i² = -1.
            reduced, sign = unit(tuple(zip(self.ring.names, m, strict=True)), 1)
            out[reduced] = out.get(reduced, Fraction(0)) + sign * int(c)
        return Polynomial(out)

    def found(self, equations: list[tuple[Element, int]]) -> Iterator[Mapping[int, Element]]:
        """Yields cofactors of what is free of unknowns."""
        left = []
        for k, (p, scale) in enumerate(equations):
            if self.ring.length(p) > LONGEST:
                continue
            of = {k: self._number(scale)}
            left.append(self._reduced(_Equation(p, self.one, of)))
        for _ in range(STEPS):
            for e in left:
                if e.p and not self._held(e.p) and self._is_nonzero(e.p):
                    yield e.cofactors
            left = [e for e in left if self._held(e.p)]
            chosen = self._pivot(left)
            if chosen is None:
                return
            g, pivot = chosen
            degree = self._degree(pivot.p, g)
            rest = [e for e in left if e is not pivot]
            later = []
            for e in rest:
                if self._degree(e.p, g) >= degree:
                    smaller = self._remainder(e, pivot, g)
                    later += [smaller] if smaller is not None else []
                else:
                    later.append(e)
            solved = degree == 1 or not any(self._degree(e.p, g) for e in later)
            # That what it gives the unknown is not 0 is something that it still says.
            says = (
                self._shared
                and any(self._degree(e.p, g) for e in rest)
                and self._is_nonzero(self._unknown(g))
            )
            left = [*later, pivot] if says or not solved else later

    def _number(self, value: int) -> Element:
        return self.ring.element({(0,) * len(self.ring.names): value})

    def _unknown(self, g: int) -> Element:
        return self.ring.element({tuple(int(k == g) for k in range(len(self.ring.names))): 1})

    def _held(self, p: Element) -> list[int]:
        """The unknowns of a polynomial."""
        degrees = self.ring.degrees(p)
        return [k for k in self.unknowns if degrees[k]]

    def _degree(self, p: Element, g: int) -> int:
        return self.ring.degrees(p)[g]

    def _pivot(self, left: list[_Equation]) -> tuple[int, _Equation] | None:
        """An unknown, and the equation that takes it away."""
        count = Counter(g for e in left for g in self._held(e.p))
        ways = [
            (
                self._shared and count[g] == 1,
                self._degree(e.p, g),
                self.ring.length(e.p),
                position,
                g,
            )
            for position, e in enumerate(left)
            for g in self._held(e.p)
        ]
        if not ways:
            return None
        *_, position, g = min(ways)
        return g, left[position]

    def _coefficient(self, p: Element, g: int, power: int) -> Element:
        parts: dict[Exponents, int] = {
            (*m[:g], 0, *m[g + 1 :]): c
            for m, c in self.ring.terms(p).items()
            if m[g] == power
        }  # fmt: skip
        return self.ring.element(parts)

    def _remainder(self, e: _Equation, pivot: _Equation, g: int) -> _Equation | None:
        """What is left of an equation after division by another; None where it is 0 or grows."""
        names = len(self.ring.names)
        degree = self._degree(pivot.p, g)
        lead = self._coefficient(pivot.p, g, degree)
        while (own := self._degree(e.p, g)) >= degree:
            top = self._coefficient(e.p, g, own)
            common = self.ring.gcd(lead, top)
            power = tuple((own - degree) * (k == g) for k in range(names))
            mine = self.ring.quotient(lead, common)
            other = self.ring.quotient(top, common) * self.ring.element({power: 1})
            if self._grows(e, mine) or self._grows(pivot, other):
                return None
            e = self._combined(e, mine, pivot, other)
            if not e.p:
                return None
            if not own:
                break
        return self._reduced(e)

    def _grows(self, e: _Equation, by: Element) -> bool:
        """Whether an equation times a polynomial may have more terms than are looked at."""
        count = self.ring.length(by)
        longest = max(map(self.ring.length, e.cofactors.values()))
        return count * self.ring.length(e.p) > TERMS or count * longest > COFACTOR

    def _combined(self, e: _Equation, a: Element, pivot: _Equation, b: Element) -> _Equation:
        """The equation a e - b pivot."""
        common = self.ring.gcd(e.factor, pivot.factor)
        mine = a * self.ring.quotient(pivot.factor, common)
        other = b * self.ring.quotient(e.factor, common)
        cofactors = {k: mine * c for k, c in e.cofactors.items()}
        for k, c in pivot.cofactors.items():
            cofactors[k] = cofactors[k] - other * c if k in cofactors else -(other * c)
        factor = e.factor * self.ring.quotient(pivot.factor, common)
        return _Equation(a * e.p - b * pivot.p, factor, cofactors)

    def _reduced(self, e: _Equation) -> _Equation:
        """The equation without factors that are not 0."""
        if not self._held(e.p) or self.ring.length(e.p) > FACTORED:
            return e
        p, factor = e.p, e.factor
        for f in self.ring.factors(p):
            if not self._is_nonzero(f):
                continue
            while self.ring.gcd(p, f) == f:
                p, factor = self.ring.quotient(p, f), factor * f
        return _Equation(p, factor, e.cofactors)

    def _is_nonzero(self, f: Element) -> bool:
        if self.ring.length(f) > FACTOR:
            return False
        p = self.polynomial(f)
        if not p:
            return False
        if p.text not in self._known:
            self._known[p.text] = False
            with suppress(TooLarge):
                self._known[p.text] = self._nonzero(p)
        return self._known[p.text]
