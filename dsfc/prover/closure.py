"""Closing the difference of two outputs under the update: the search for a linear invariant.

    rows := []
    work := coefficients of the difference of the outputs
    while work: reduce by rows; keep what is left; push its pull-back

A pull-back is a row with its states replaced by the update, split into the coefficients of the
monomials in what only the present token has: these are free, so each coefficient must vanish on its
own. The chain of row spaces grows at most as often as there are state entries (of degree 1), so it
ends. What it finds is checked afterwards by `dsfc.trusted`, which shares none of this.

Elimination is free of fractions, in the exact polynomials of `dsfc.prover.field`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import lcm

from dsfc.prover.field import Element, Exponents, ring
from dsfc.trusted.claim import CellMonomial, Row
from dsfc.trusted.entries import Obstacle
from dsfc.trusted.generator_names import LAG, STATE, shifted
from dsfc.trusted.invariant import Columns, cleared, columns, difference
from dsfc.trusted.polynomial import (
    IMAGINARY,
    ONE,
    POLYNOMIAL_ZERO,
    Polynomial,
    Quotient,
    unit,
)
from dsfc.trusted.statement import WrittenClaim

ROW_LIMIT = 160
"""Rows of one invariant."""


@dataclass(frozen=True, slots=True)
class Differs:
    """The outputs are different as functions of free generators; not yet a refutation."""


Vector = dict[CellMonomial, Element]
"""Product of state entries → polynomial over the generators of one moment."""


def close(statement: WrittenClaim, terms: int | None = None) -> tuple[Row, ...] | Differs:
    """Returns the rows of an invariant that shows equality, or that none exists.

    Args:
        statement: what is to be shown.
        terms: bound on the terms of a coefficient on the way; None for that of polynomials.

    Raises:
        Obstacle: the invariant grows over its limit, or a coefficient over its bound.
    """
    return _Closure(statement, terms).run()


class _Closure:
    """The rows found so far, in reduced echelon form."""

    def __init__(self, statement: WrittenClaim, terms: int | None = None) -> None:
        self.statement = statement
        self.terms = terms
        self.step = statement.steady.step
        self.products: dict[CellMonomial, Quotient] = {}
        self.known = statement.conditions.values(statement.window)
        self.ring = ring(_names(statement))
        self.rows: list[tuple[CellMonomial, Vector]] = []
        self.imaginary = IMAGINARY in self.ring.names
        self.roots = statement.roots
        self.rooted = any(self.roots.of(name) for name in self.ring.names)

    def run(self) -> tuple[Row, ...] | Differs:
        """Closes the difference."""
        work: list[Vector] = []
        for left, right in self.statement.steady.outputs:
            work += self._split(difference(left, right))
        while work:
            row = self._reduced(work.pop(0))
            if not row:
                continue
            pivot = self._pivot(row)
            if pivot is None:
                return Differs()
            self._add(pivot, row)
            if len(self.rows) > ROW_LIMIT:
                raise Obstacle(f"the invariant has more than {ROW_LIMIT} rows")
            work += self._split(self._after(row))
        return tuple(self._stored(pivot, row) for pivot, row in self.rows)

    # --- rows -------------------------------------------------------------------------------------

    def _reduced(self, row: Vector) -> Vector:
        """What is left of a row modulo the rows found."""
        for pivot, known in self.rows:
            if pivot in row:
                row = self._eliminated(row, pivot, known)
        return row

    def _eliminated(self, row: Vector, pivot: CellMonomial, known: Vector) -> Vector:
        """The row times known's pivot, minus known times the row's."""
        common = self.ring.gcd(row[pivot], known[pivot])
        p, q = self._exact(known[pivot], common), self._exact(row[pivot], common)
        out: Vector = {}
        for cells in {**row, **known}:
            if cells == pivot:
                continue
            value = None
            if cells in row:
                value = self._times(p, row[cells])
            if cells in known:
                other = self._times(q, known[cells])
                value = value - other if value is not None else -other
            if value:
                out[cells] = value
        out = self._primitive(out)
        if self.terms and any(self.ring.length(p) > self.terms for p in out.values()):
            raise Obstacle(f"a coefficient of the invariant has more than {self.terms} terms")
        return out

    def _add(self, pivot: CellMonomial, row: Vector) -> None:
        self.rows = [
            (p, self._eliminated(known, pivot, row) if pivot in known else known)
            for p, known in self.rows
        ]
        self.rows.append((pivot, row))

    def _pivot(self, row: Vector) -> CellMonomial | None:
        """The product of states with the simplest coefficient; None where only 1 is left."""
        candidates = [(self.ring.length(p), cells) for cells, p in row.items() if cells]
        return min(candidates)[1] if candidates else None

    def _primitive(self, row: Vector) -> Vector:
        """The row without a common factor of its coefficients."""
        common = None
        for p in row.values():
            common = p if common is None else self.ring.gcd(common, p)
        if common is None or self.ring.terms(common) == {(0,) * len(self.ring.names): 1}:
            return row
        return {cells: self._exact(p, common) for cells, p in row.items()}

    def _exact(self, p: Element, q: Element) -> Element:
        return self.ring.quotient(p, q)

    def _times(self, p: Element, q: Element) -> Element:
        out = p * q
        out = self._without_squares(out) if self.imaginary else out
        return self._without_powers(out) if self.rooted else out

    def _without_powers(self, p: Element) -> Element:
        """The same value with the known powers of roots put in."""
        return self._element(self.roots.reduced(Quotient(self._polynomial(p))).num)

    def _element(self, p: Polynomial) -> Element:
        position = {name: k for k, name in enumerate(self.ring.names)}
        terms: dict[Exponents, int] = {}
        for m, c in p.terms.items():
            powers = [0] * len(position)
            for name, exponent in m:
                powers[position[name]] = exponent
            terms[tuple(powers)] = c.numerator
        return self.ring.element(terms)

    def _without_squares(self, p: Element) -> Element:
        """The same value with i² replaced by −1."""
        at = self.ring.names.index(IMAGINARY)
        if self.ring.degrees(p)[at] < 2:
            return p
        out: dict[Exponents, int] = {}
        for m, c in self.ring.terms(p).items():
            turns = m[at]
            key = (*m[:at], turns % 2, *m[at + 1 :])
            out[key] = out.get(key, 0) + (-c if turns % 4 >= 2 else c)
        return self.ring.element({m: c for m, c in out.items() if c})

    # --- pull-back --------------------------------------------------------------------------------

    def _after(self, row: Vector) -> Quotient:
        """A row after the token, of states before it, without what it is divided by."""
        products = [(self._product(cells), p) for cells, p in row.items()]
        den: dict[Polynomial, int] = {}
        for q, _ in products:
            for base, exponent in q.den.items():
                den[base] = max(den.get(base, 0), exponent)
        # What divides is looked for once, at the end.
        num = POLYNOMIAL_ZERO
        for q, p in products:
            part = self._polynomial(p) * q.num
            for base, exponent in den.items():
                part = part * base.power(exponent - q.den.get(base, 0))
            num = num + part
        out = Quotient(num, den)
        if out.names & self.known.keys():
            out = out.substituted(self.known)
        return cleared(Quotient(out.num))

    def _product(self, cells: CellMonomial) -> Quotient:
        """A product of state entries after the token."""
        if cells not in self.products:
            out = ONE
            for cell in cells:
                out = out * self.step[cell]
            self.products[cells] = out
        return self.products[cells]

    def _split(self, target: Quotient) -> list[Vector]:
        """Rows of the moment before: one for each monomial in what the present token has alone.

        Denominators are left out: what divides all coefficients of states is cancelled already.
        """
        cleared = {
            cells: self.roots.reduced(Quotient(p)).num
            for cells, p in _cleared(columns(Quotient(target.num))).items()
        }
        parts: dict[tuple[tuple[str, int], ...], dict[CellMonomial, dict[Exponents, int]]] = {}
        position = {name: k for k, name in enumerate(self.ring.names)}
        for cells, p in cleared.items():
            for m, c in p.terms.items():
                present = tuple(f for f in m if "0" in LAG.findall(f[0]))
                powers = [0] * len(position)
                for name, exponent in m:
                    if (name, exponent) not in present:
                        powers[position[shifted(name, -1)]] = exponent
                row = parts.setdefault(present, {}).setdefault(cells, {})
                row[tuple(powers)] = c.numerator
        out = []
        for _, part in sorted(parts.items()):
            vector = {cells: self.ring.element(terms) for cells, terms in sorted(part.items())}
            out.append(self._primitive(vector))
        return out

    # --- back to names ----------------------------------------------------------------------------

    def _polynomial(self, p: Element) -> Polynomial:
        names = self.ring.names
        return Polynomial(
            {
                tuple(sorted((names[k], e) for k, e in enumerate(m) if e)): Fraction(c)
                for m, c in self.ring.terms(p).items()
            }
        )

    def _stored(self, pivot: CellMonomial, row: Vector) -> Row:
        terms = []
        for cells, p in sorted(row.items()):
            ordered = self._polynomial(p).ordered
            terms.append((cells, tuple((m, c.numerator) for m, c in ordered)))
        return Row(pivot, tuple(terms))


def _cleared(target: Columns) -> dict[CellMonomial, Polynomial]:
    """A multiple of some coefficients that are polynomials over the integers."""
    lowest: dict[str, int] = {}
    numbers = 1
    for q in target.values():
        for m, c in q.num.terms.items():
            numbers = lcm(numbers, c.denominator)
            for name, exponent in m:
                lowest[name] = min(lowest.get(name, 0), exponent)
    clearing, _ = unit(tuple(sorted((g, e) for g, e in lowest.items() if e)), -1)
    factor = Polynomial({clearing: Fraction(numbers)})
    return {cells: q.num * factor for cells, q in target.items() if q}


def _names(statement: WrittenClaim) -> tuple[str, ...]:
    """Every generator that a row may have: those of the steady step, as early as they can be."""
    names: set[str] = set()
    steady = statement.steady
    known = statement.conditions.values(statement.window)
    outputs = (q for pair in steady.outputs for q in pair)
    for q in (*steady.step.values(), *outputs, *known.values()):
        names |= {name for name in q.names if STATE not in name}
    out = set()
    for name in statement.roots.closed(names):
        while "0" not in LAG.findall(name):
            out.add(name)
            if not LAG.search(name):
                break
            name = shifted(name, -1)
        out.add(name)
    return tuple(sorted(out))
