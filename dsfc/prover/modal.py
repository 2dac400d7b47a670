"""Modes: values of a second mixer's decays and weights that give it the kernel of a first one.

Both stay the same at all tokens, with one input and one output: y_i = Σ_l K_l u_{i-l}. The state
entries of the first fall into parts that do not read one another. In a part with different
eigenvalues λ and the row o and drive f,

    o Λ^(l-1) f = Σ_k r_k λ_k^(l-1),    r_k = o Π_{m≠k}(Λ - λ_m) f / Π_{m≠k}(λ_k - λ_m).

Eigenvalues are looked for among the roots of linear factors of the characteristic polynomial, and
of quadratic ones whose discriminant is a square in the field of quotients, with i. An entry of the
second's states that goes on as h_i = λ h_{i-1} + b u_i, with a parameter λ of its own, gets an
eigenvalue for λ; one that its weight is linear in gets what makes the weight r_k. What comes out
are conditions like any others; nothing here is trusted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import permutations
from math import isqrt

from dsfc.prover.condition_polynomials import condition
from dsfc.prover.factors import factors
from dsfc.trusted.alpha_rename import alpha_rename, own_names
from dsfc.trusted.claim import Claim, Condition
from dsfc.trusted.comparable import own_parameters
from dsfc.trusted.elementary import IMAGINARY_UNIT
from dsfc.trusted.generator_names import STATE
from dsfc.trusted.polynomial import (
    HALF,
    IMAGINARY,
    ONE,
    ZERO,
    Polynomial,
    Quotient,
    generator,
    number,
    total,
)
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.rules.constant_sequence import own_axes
from dsfc.trusted.rules.markov import Markov, Vector
from dsfc.trusted.statement import state
from dsfc.trusted.symbols import Symbols

MOST = 4
"""State entries of one part."""
MODES = 8
"""Entries along an axis of b's own."""

UNKNOWN = "eigenvalue[]"
"""The unknown of a characteristic polynomial."""


@dataclass(frozen=True, slots=True)
class _Cell:
    """A state entry of the second: what carries it on, and what its weight is linear in.

    Attributes:
        decay: the generator λ.
        weight: the generator, of its own too.
        factor: what multiplies it in the weight.
    """

    decay: str
    weight: str
    factor: Quotient


def modal(claim: Claim) -> Iterator[Claim]:
    """Yields claims that a is a case of b, at some size of b's own axes, with conditions.

    Args:
        claim: without conditions; parameters of b may be told apart.

    Raises:
        Rejected, Obstacle, ValueError, ZeroDivisionError: no such systems.
    """
    own = own_names(claim)
    claim = replace(claim, apart=tuple(own))
    free = [own.get(name, name) for name in own_axes(claim)]
    for size in range(1, MODES + 1):
        sizes = dict(claim.sizes) | dict.fromkeys(free, size)
        sized = replace(claim, sizes=tuple(sorted(sizes.items())))
        both = _Both(alpha_rename(sized))
        conditions = both.conditions()
        if conditions is not None:
            yield replace(sized, conditions=conditions)
        if conditions is not None or not free or both.enough:
            return


class _Both:
    """Two systems that stay the same, the second's parameters its own."""

    def __init__(self, claim: Claim) -> None:
        self.statement = state(claim, False)
        self.symbols: Symbols = self.statement.symbols
        self.markov = Markov(self.statement)
        self.own = own_parameters(claim)
        if len(self.markov.differences) != 1:
            raise Rejected("there are several outputs")
        (self.output,) = self.markov.differences
        self.enough = False

    def conditions(self) -> tuple[Condition, ...] | None:
        """Returns values of the second's parameters, None where there are none."""
        residues = self._residues()
        cells = self._cells()
        modes = self._without_twins(residues, cells)
        single = [name for name in cells if not name.startswith("~")]
        self.enough = len(single) >= len(modes)
        if len(single) != len(modes) or not modes:
            return None
        values: dict[str, Quotient] = {}
        carried: dict[str, Quotient] = {}
        for name, eigenvalue in zip(single, modes, strict=True):
            for cell, value in (name, eigenvalue), (f"~{name}", self._conjugate(eigenvalue)):
                if cell in cells:
                    values[cells[cell].decay] = carried[cell] = value
        for cell, eigenvalue in carried.items():
            sharing = sum(1 for other in carried.values() if not other - eigenvalue)
            factor = cells[cell].factor.substituted(values)
            residue = residues[eigenvalue.text][1]
            values[cells[cell].weight] = self._over(residue, factor * number(sharing))
        return tuple(condition((Quotient(generator(name)) - value).num, name)
                     for name, value in sorted(values.items())
                     if not name.startswith("~"))  # fmt: skip

    def _conjugate(self, q: Quotient) -> Quotient:
        return self.symbols.conjugate(q)

    def _over(self, q: Quotient, by: Quotient) -> Quotient:
        """A quotient, its denominator real: then it is seen where it divides."""
        twin = self._conjugate(by)
        return q * twin / (by * twin) if by - twin else q / by

    # --- the first --------------------------------------------------------------------------------

    def _residues(self) -> dict[str, tuple[Quotient, Quotient]]:
        """Text of an eigenvalue → itself and r, those of parts of one eigenvalue added."""
        out: dict[str, tuple[Quotient, Quotient]] = {}
        row = self._of("A", self.output.coefficients)
        drive = self._of("A", self._drive())
        for part in self._parts():
            eigenvalues = self._eigenvalues(part)
            for k, value in enumerate(eigenvalues):
                left: Vector = {name: q for name, q in row.items() if name in part}
                below = ONE
                for m, other in enumerate(eigenvalues):
                    if m != k:
                        left = self._shifted(left, other)
                        below = below * (value - other)
                above = total(q * drive.get(name, ZERO) for name, q in left.items())
                known = out.get(value.text, (value, ZERO))[1]
                residue = known + self._over(above, below)
                if residue:
                    out[value.text] = value, residue
        return out

    def _of(self, label: str, row: Vector) -> dict[str, Quotient]:
        return {name: q for name, q in row.items() if _side(name) == label and q}

    def _drive(self) -> dict[str, Quotient]:
        """What drives the states, per unit of the one input."""
        inputs = {g for q in self.markov.drive.values() for g in q.names if "@" in g}
        if len(inputs) != 1:
            raise Rejected("states are driven by more than one input")
        (name,) = inputs
        out = {cell: q / Quotient(generator(name)) for cell, q in self.markov.drive.items()}
        if any(name in q.names for q in out.values()):
            raise Rejected("states are not driven by an input as it is")
        return out

    def _parts(self) -> list[list[str]]:
        """State entries of the first that are linked, in order."""
        links: dict[str, set[str]] = {}
        for name, row in self.markov.transition.items():
            if _side(name) == "A":
                links.setdefault(name, set())
                for read, q in row.items():
                    if q:
                        links[name].add(read)
                        links.setdefault(read, set()).add(name)
        out: list[list[str]] = []
        seen: set[str] = set()
        for name in sorted(links):
            if name in seen:
                continue
            part, left = set[str](), [name]
            while left:
                top = left.pop()
                if top not in part:
                    part.add(top)
                    left += links[top]
            seen |= part
            out.append(sorted(part))
        return out

    def _shifted(self, row: Vector, by: Quotient) -> Vector:
        """A row times (Λ - by)."""
        out = {name: -(q * by) for name, q in row.items()}
        for name, q in row.items():
            for read, coefficient in self.markov.transition[name].items():
                out[read] = out.get(read, ZERO) + q * coefficient
        return out

    def _eigenvalues(self, part: list[str]) -> list[Quotient]:
        """The different eigenvalues of a part.

        Raises:
            Rejected: some were not found.
        """
        if len(part) == 1:
            return [self.markov.transition[part[0]].get(part[0], ZERO)]
        if len(part) > MOST:
            raise Rejected(f"more than {MOST} entries of states are coupled")
        unknown = Quotient(generator(UNKNOWN))
        matrix = [
            [(unknown if a == b else ZERO) - self.markov.transition[a].get(b, ZERO)
             for b in part]
            for a in part
        ]  # fmt: skip
        out = []
        for factor in _factors(_determinant(matrix).num):
            out += _roots(factor)
        if len(out) != len(part):
            raise Rejected("eigenvalues were not found, or are not different")
        return out

    # --- the second -------------------------------------------------------------------------------

    def _cells(self) -> dict[str, _Cell]:
        """State entries of the second."""
        row = self._of("B", self.output.coefficients)
        drive = self._of("B", self._drive())
        out = {}
        for name in sorted(row):
            transition = {read: q for read, q in self.markov.transition[name].items() if q}
            decay = self._generator(transition.get(name, ZERO))
            weight = -(row[name] * drive.get(name, ZERO))
            linear = [g for g in weight.names if g != decay and self._is_own(g)]
            if set(transition) != {name} or decay is None or len(linear) != 1:
                raise Rejected(f"`{name}` is no mode with a weight")
            factor = weight / Quotient(generator(linear[0]))
            if linear[0] in factor.names:
                raise Rejected(f"the weight of `{name}` is not linear")
            out[name] = _Cell(decay, linear[0], factor)
        return out

    def _generator(self, q: Quotient) -> str | None:
        """The parameter of the second's own that a value is."""
        (name,) = q.names if len(q.names) == 1 else ("",)
        return name if self._is_own(name) and not q - Quotient(generator(name)) else None

    def _is_own(self, name: str) -> bool:
        return name.removeprefix("~").partition("[")[0] in self.own

    def _without_twins(
        self, residues: Mapping[str, tuple[Quotient, Quotient]], cells: Mapping[str, _Cell]
    ) -> list[Quotient]:
        """The eigenvalues, of two conjugate ones the first where entries have conjugates too."""
        twins = any(name.startswith("~") for name in cells)
        out: list[Quotient] = []
        for value, _ in residues.values():
            if not (twins and any(not self._conjugate(value) - known for known in out)):
                out.append(value)
        return out


def _side(name: str) -> str:
    return name.removeprefix("~").removeprefix(STATE)[0]


def _determinant(matrix: list[list[Quotient]]) -> Quotient:
    terms = []
    for order in permutations(range(len(matrix))):
        swaps = sum(1 for k in range(len(order)) for m in range(k) if order[m] > order[k])
        term = number((-1) ** swaps)
        for k, at in enumerate(order):
            term = term * matrix[k][at]
        terms.append(term)
    return total(terms)


def _factors(p: Polynomial) -> list[Polynomial]:
    """The irreducible factors that hold the unknown; p must not hold i."""
    if IMAGINARY in p.names:
        raise Rejected("a matrix of complex numbers")
    return [f for f in factors(p) if UNKNOWN in f.names]


def _roots(p: Polynomial) -> list[Quotient]:
    """The roots of a polynomial of degree 1 or 2 in the unknown, as far as they are quotients."""
    parts: dict[int, dict[tuple[tuple[str, int], ...], Fraction]] = {}
    for m, c in p.terms.items():
        powers = dict(m)
        degree = powers.pop(UNKNOWN, 0)
        parts.setdefault(degree, {})[tuple(sorted(powers.items()))] = c
    by = {degree: Quotient(Polynomial(terms)) for degree, terms in parts.items()}
    c0, c1, c2 = (by.get(k, ZERO) for k in range(3))
    match max(by):
        case 1:
            return [-c0 / c1]
        case 2:
            root = _root(c1 * c1 - number(4) * c2 * c0)
            return [] if root is None else [(sign * root - c1) * HALF / c2
                                            for sign in (ONE, -ONE)]  # fmt: skip
    return []


def _root(q: Quotient) -> Quotient | None:
    """A square root of a polynomial in the field of quotients with i, None where there is none."""
    if q.den or not q:
        return None
    common, rest = q.num.split()
    ((m, c),) = common.terms.items()
    out = ONE
    for f in factors(rest) if rest.names else []:
        out = out * Quotient(f)
    if out.num * out.num != rest or any(e % 2 for _, e in m):
        return None
    above, below = isqrt(abs(c).numerator), isqrt(c.denominator)
    if Fraction(above * above, below * below) != abs(c):
        return None
    out = out * Quotient(Polynomial({tuple((g, e // 2) for g, e in m): Fraction(above, below)}))
    return out * IMAGINARY_UNIT if c < 0 else out
