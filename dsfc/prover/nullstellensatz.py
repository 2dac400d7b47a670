"""Polynomials c_k with Σ c_k f_k free of unknowns: how the search for rule "test-sequences" ends.

Buchberger's algorithm with cofactors, for small systems. The leading term of a polynomial is one of
the highest degree in the unknowns, so what is free of unknowns comes out as a remainder of its own.
Nothing here is trusted: what is found is multiplied out by the kernel.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from heapq import heappop, heappush

from dsfc.trusted.polynomial import Monomial, Polynomial, constant

DEGREE = 8
"""Total degree of what is looked at."""
TERMS = 200
"""Terms of one polynomial."""

_Exponents = tuple[int, ...]
_Terms = dict[_Exponents, Fraction]
_Cofactors = dict[int, _Terms]


class Budget:
    """How much is left to be done, in terms that are added.

    Args:
        left: how many.
    """

    def __init__(self, left: int) -> None:
        """Starts with all of it."""
        self.left = left


@dataclass(frozen=True, slots=True)
class _Element:
    """A polynomial of the ideal, with its leading exponents and cofactors."""

    terms: _Terms
    lead: _Exponents
    cofactors: _Cofactors


def sums(
    polynomials: Sequence[Polynomial], constants: frozenset[str]
) -> Iterator[Mapping[int, Polynomial]]:
    """Yields numbers, by position, that make a sum free of unknowns and not 0.

    Args:
        polynomials: polynomials f_k.
        constants: generators that are no unknowns.
    """
    rows: list[tuple[Monomial, Polynomial, dict[int, Fraction]]] = []
    for k, p in enumerate(polynomials):
        cofactors = {k: Fraction(1)}
        for lead, row, by in rows:
            if lead in p.terms:
                factor = -p.terms[lead] / row.terms[lead]
                p = p + row * constant(factor)
                for at, c in by.items():
                    cofactors[at] = cofactors.get(at, Fraction(0)) + factor * c
        held = [m for m in p.terms if any(g not in constants for g, _ in m)]
        if held:
            rows.append((max(held), p, cofactors))
        elif p:
            yield {at: constant(c) for at, c in cofactors.items() if c}


def combinations(
    polynomials: Sequence[Polynomial], constants: frozenset[str], budget: Budget
) -> Iterator[Mapping[int, Polynomial]]:
    """Yields cofactors, by position, of combinations that are free of unknowns and not 0.

    Args:
        polynomials: polynomials f_k, without negative exponents.
        constants: generators that are no unknowns.
        budget: what is done is taken off it.
    """
    search = _Search(polynomials, constants, budget)
    for cofactors in search.found():
        yield {k: search.polynomial(terms) for k, terms in cofactors.items() if terms}


class _Search:
    """The ideal as far as it is known."""

    def __init__(
        self, polynomials: Sequence[Polynomial], constants: frozenset[str], budget: Budget
    ) -> None:
        self.budget = budget
        every = frozenset().union(*(p.names for p in polynomials))
        self.names = (*sorted(every - constants), *sorted(every & constants))
        self.unknowns = len(every - constants)
        self.waiting: list[tuple[int, int, int, _Terms, _Cofactors]] = []
        self.basis: list[_Element] = []
        self.count = 0
        one = (0,) * len(self.names)
        for k, p in enumerate(polynomials):
            terms = {
                tuple(dict(m).get(g, 0) for g in self.names): Fraction(c)
                for m, c in p.terms.items()
            }
            self._wait(terms, {k: {one: Fraction(1)}})

    def polynomial(self, terms: _Terms) -> Polynomial:
        """Returns terms by names."""
        return Polynomial(
            {tuple((g, e) for g, e in zip(self.names, m, strict=True) if e): c
             for m, c in terms.items()}
        )  # fmt: skip

    def found(self) -> Iterator[_Cofactors]:
        """Yields cofactors of what is free of unknowns."""
        while self.waiting and self.budget.left > 0:
            *_, terms, cofactors = heappop(self.waiting)
            reduced = self._reduced(terms, cofactors)
            if reduced is None:
                continue
            terms, cofactors = reduced
            lead = max(terms, key=self._rank)
            if not any(lead[: self.unknowns]):
                yield cofactors
                continue
            new = _Element(terms, lead, cofactors)
            for old in self.basis:
                self._pair(old, new)
            self.basis.append(new)

    def _rank(self, m: _Exponents) -> tuple[int, _Exponents]:
        return sum(m[: self.unknowns]), m

    def _wait(self, terms: _Terms, cofactors: _Cofactors) -> None:
        if not terms or len(terms) > TERMS:
            return
        degree = max(map(sum, terms))
        if degree > DEGREE:
            return
        self.count += 1
        heappush(self.waiting, (degree, len(terms), self.count, terms, cofactors))

    def _pair(self, a: _Element, b: _Element) -> None:
        """The combination of two in which their leading terms cancel."""
        if not any(x and y for x, y in zip(a.lead, b.lead, strict=True)):
            return
        joint = tuple(map(max, a.lead, b.lead))
        if sum(joint) > DEGREE:
            return
        terms: _Terms = {}
        cofactors: _Cofactors = {}
        for element, sign in ((a, 1), (b, -1)):
            shift = tuple(x - y for x, y in zip(joint, element.lead, strict=True))
            self._add(terms, cofactors, element, shift, sign / element.terms[element.lead])
        self._wait(terms, cofactors)

    def _reduced(self, terms: _Terms, cofactors: _Cofactors) -> tuple[_Terms, _Cofactors] | None:
        """The remainder by the basis; None where it is 0 or grows."""
        terms = dict(terms)
        cofactors = {k: dict(c) for k, c in cofactors.items()}
        kept: set[_Exponents] = set()
        while True:
            left = [m for m in terms if m not in kept]
            if not left:
                return (terms, cofactors) if terms else None
            m = max(left, key=self._rank)
            by = next((b for b in self.basis if all(map(int.__le__, b.lead, m))), None)
            if by is None:
                kept.add(m)
                continue
            shift = tuple(x - y for x, y in zip(m, by.lead, strict=True))
            self._add(terms, cofactors, by, shift, -terms[m] / by.terms[by.lead])
            if len(terms) > TERMS or self.budget.left <= 0:
                return None

    def _add(
        self,
        terms: _Terms,
        cofactors: _Cofactors,
        element: _Element,
        shift: _Exponents,
        factor: Fraction,
    ) -> None:
        """Adds a multiple of an element."""
        self.budget.left -= 1 + len(element.terms) + sum(map(len, element.cofactors.values()))
        _add_terms(terms, element.terms, shift, factor)
        for k, c in element.cofactors.items():
            _add_terms(cofactors.setdefault(k, {}), c, shift, factor)


def _add_terms(terms: _Terms, more: _Terms, shift: _Exponents, factor: Fraction) -> None:
    for m, c in more.items():
        at = tuple(map(int.__add__, m, shift))
        value = terms.get(at, Fraction(0)) + factor * c
        if value:
            terms[at] = value
        else:
            terms.pop(at, None)
