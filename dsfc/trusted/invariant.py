"""Rule "linear-invariant": rows that vanish on the states prove that the outputs are equal.

Let z be the products of state entries of both systems, the constant 1 among them, and F the field
of quotients over the generators of all tokens. Four things are checked, each by exact arithmetic:

1. rows read one moment: no generator older than w − 1 tokens, w the window of the statement, and
   each pivot is in its own row only;
2. at the first w tokens the outputs are equal, and after token w − 1 every row is 0;
3. a row after a token, its states replaced by the update, is a combination over F of the rows
   before it;
4. so is the difference of the outputs, with denominators multiplied out.

By induction every row is 0 in F after every token from w − 1 on, and so is every difference. The
denominators of multipliers are not 0 in F, which is all that a combination needs. What remains of
denominators are those of the systems, and an equality of quotients in F is an equality of functions
wherever these are not 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from dsfc.trusted.claim import CellMonomial, Claim, Invariant, Row
from dsfc.trusted.conditions import read as polynomial
from dsfc.trusted.entries import Obstacle
from dsfc.trusted.generator_names import STATE, lags, shifted
from dsfc.trusted.index_form import NoCount
from dsfc.trusted.laws import law
from dsfc.trusted.polynomial import ZERO, Monomial, Polynomial, Quotient
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.roots import NO_ROOTS, Roots
from dsfc.trusted.size_induction import size_induction
from dsfc.trusted.small_model_bound import unproved
from dsfc.trusted.statement import WrittenClaim, state

Columns = Mapping[CellMonomial, Quotient]
"""Product of state entries → coefficient."""


@dataclass(frozen=True, slots=True)
class ReadRow:
    """A row with its coefficients as polynomials; see `dsfc.trusted.claim.Row`."""

    pivot: CellMonomial
    terms: Mapping[CellMonomial, Polynomial]


def check_invariant(claim: Claim, proof: Invariant) -> None:
    """Checks a certificate of equality.

    Raises:
        Rejected: a check failed.
        Obstacle, ValueError: the claim has no meaning here.
    """
    check_plain(claim, "linear-invariant")
    statement = state(claim, proof.entries, tuple(map(law, proof.relations)))
    check_rows(statement, proof)
    check_every(claim, unlifted(claim, proof, statement))


def check_plain(claim: Claim, rule: str) -> None:
    """Checks that a claim is one of equality without conditions, which is what a rule shows.

    Raises:
        Rejected: it is not.
    """
    if not claim.equal:
        raise Rejected(f'rule "{rule}" shows equality, and difference is claimed')
    if claim.conditions or claim.assumed:
        raise Rejected(f'rule "{rule}" has no conditions')
    if claim.case:
        # Ranges of b's parameters may be smaller than a's: see `conditional.check_case`.
        raise Rejected(f'rule "{rule}" says nothing of cases')
    if claim.free and claim.every:
        raise Rejected("sizes are not counted where values are inputs of their own")


def check_every(claim: Claim, left: Mapping[str, str]) -> None:
    """Checks that a proof at the sizes of a claim is one for all sizes of the axes that it names.

    Args:
        claim: which one.
        left: the axes of which it is a proof at one size only, with the reasons.

    Raises:
        Rejected: it is not.
    """
    for name in claim.every:
        if name in left or name not in dict(claim.sizes):
            why = left.get(name, "there is no such axis")
            raise Rejected(f"this is no proof for all sizes of {name}: {why}")


def unlifted(claim: Claim, proof: Invariant, statement: WrittenClaim) -> dict[str, str]:
    """Returns the axes of which an invariant shows equality at one size only, with the reasons.

    The others come in two kinds: those that are counted over all tokens, and those along which the
    rows are a family, of which one token is counted. What a family shows at a size of the latter it
    shows at every size, and there what is counted over all tokens is as it is here.

    Args:
        claim: what is claimed, at what sizes.
        proof: an invariant of it, checked.
        statement: the claim written out.
    """
    out = unproved(claim, proof.entries)
    rows = {row.pivot: _read(row).terms for row in proof.rows}
    for name in list(out):
        try:
            size_induction(claim, proof.entries, statement, rows, name)
            del out[name]
        except NoCount as e:
            out[name] = out[name] if str(e) == out[name] else f"{out[name]}, and {e}"
    return out


def check_rows(statement: WrittenClaim, proof: Invariant) -> None:
    """Checks the rows of an invariant for a statement, which may be one under conditions.

    Raises:
        Rejected: a check failed.
    """
    rows = [_read(row) for row in proof.rows]
    _check_rows(statement, rows)
    _check_start(statement, rows)
    # `shifted` moves names of rows one token back, into the moment before the update.
    known = statement.conditions.values(statement.window)
    before = [_shifted(row, known) for row in rows]
    for earlier in before:
        # A pivot that conditions at other tokens make 0 would let anything follow.
        if statement.conditions.touches(next(iter(earlier.values())).names):
            raise Rejected("the pivot of a row holds what a condition gives a value")
    roots = statement.roots
    for row in rows:
        if not vanishes(after(row, statement.steady.step, known), before, roots):
            raise Rejected("a row is not kept by the update")
    for left, right in statement.steady.outputs:
        if not vanishes(columns(difference(left, right)), before, roots):
            raise Rejected("the outputs differ where the rows vanish")


def _read(row: Row) -> ReadRow:
    terms: dict[CellMonomial, Polynomial] = {}
    for cells, coefficient in row.terms:
        if cells in terms or not coefficient:
            raise Rejected("a row has a column twice, or an empty one")
        terms[cells] = polynomial(coefficient)
    return ReadRow(row.pivot, terms)


def _check_rows(statement: WrittenClaim, rows: list[ReadRow]) -> None:
    cells = statement.steady.step.keys()
    for row in rows:
        if row.pivot not in row.terms:
            raise Rejected("a row does not have its pivot")
        if not row.pivot:
            raise Rejected("a row has no state in its pivot")
        if not statement.roots.regular(row.terms[row.pivot]):
            raise Rejected("the pivot of a row may divide 0")
        for cell_monomial, coefficient in row.terms.items():
            if any(cell not in cells for cell in cell_monomial):
                raise Rejected("a row names a state that does not exist")
            if list(cell_monomial) != sorted(cell_monomial):
                raise Rejected("a product of states is not in order")
            if any(STATE in name for name in coefficient.names):
                raise Rejected("a coefficient holds a state")
            if any(lag >= statement.window for lag in lags(coefficient.names)):
                raise Rejected("a row reads further back than its moment")
        if any(other is not row and row.pivot in other.terms for other in rows):
            raise Rejected("a pivot is in two rows")


def _check_start(statement: WrittenClaim, rows: list[ReadRow]) -> None:
    values = rolled_out(statement)
    known = statement.conditions.at(statement.window - 1)
    for row in rows:
        if statement.roots.reduced(_joined(row).substituted(values).substituted(known)):
            raise Rejected("a row does not vanish at the start")


def rolled_out(statement: WrittenClaim) -> Mapping[str, Quotient]:
    """Returns the states after the first w tokens, of generators of the last of them and before.

    Raises:
        Rejected: the outputs differ at one of these tokens.
    """
    values = dict.fromkeys(statement.steady.step, ZERO)
    for token, moment in enumerate(statement.first):
        known = statement.conditions.at(token)
        earlier = {name: q.renamed(lambda g: shifted(g, 1)) for name, q in values.items()}
        for left, right in moment.outputs:
            apart = difference(left, right).substituted(earlier).substituted(known)
            if statement.roots.reduced(apart):
                raise Rejected("the outputs differ at one of the first tokens")
        values = {
            name: q.substituted(earlier).substituted(known) for name, q in moment.step.items()
        }
    return values


def difference(left: Quotient, right: Quotient) -> Quotient:
    """Returns left − right times its denominators that hold states: 0 exactly where that is."""
    return cleared(left - right)


def cleared(out: Quotient) -> Quotient:
    """Returns a quotient times its denominators that hold states."""
    lowest: dict[str, int] = {}
    for m in out.num.terms:
        for name, exponent in m:
            if STATE in name:
                lowest[name] = min(lowest.get(name, 0), exponent)
    clearing = tuple(sorted((name, -e) for name, e in lowest.items() if e))
    multiplied = Quotient(out.num * Polynomial({clearing: Fraction(1)}))
    for base, exponent in out.den.items():
        if not any(STATE in name for name in base.names):
            multiplied = multiplied / Quotient(base).power(exponent)
    return multiplied


def _joined(row: ReadRow) -> Quotient:
    """A row as one quotient."""
    out = ZERO
    for cells, coefficient in row.terms.items():
        out = out + Quotient(coefficient) * _product(cells)
    return out


def _product(cells: CellMonomial) -> Quotient:
    counts: dict[str, int] = {}
    for cell in cells:
        counts[cell] = counts.get(cell, 0) + 1
    return Quotient(Polynomial({tuple(sorted(counts.items())): Fraction(1)}))


def after(row: ReadRow, step: Mapping[str, Quotient], known: Mapping[str, Quotient]) -> Columns:
    """Returns a row after a token as a combination of products of states before it.

    What the update divides by, where it holds states, is multiplied out: it is other than 0.

    Args:
        row: the row.
        step: state entry → its value after the token.
        known: generator → the value that conditions give it.
    """
    return columns(cleared(_joined(row).substituted(step).substituted(known)))


def columns(q: Quotient) -> Columns:
    """Returns a quotient as coefficients of products of state entries.

    Raises:
        Rejected: a state stands in a denominator: it is no such combination.
    """
    if any(STATE in name for base in q.den for name in base.names):
        raise Rejected("a state stands in a denominator")
    parts: dict[CellMonomial, dict[Monomial, Fraction]] = {}
    for m, c in q.num.terms.items():
        cells: list[str] = []
        for name, exponent in m:
            if STATE in name:
                if exponent < 0:
                    raise Obstacle(f"the reciprocal of `{name}` stands alone")
                cells += [name] * exponent
        rest = tuple(f for f in m if STATE not in f[0])
        parts.setdefault(tuple(sorted(cells)), {})[rest] = c
    return {cells: Quotient(Polynomial(terms), q.den) for cells, terms in parts.items()}


def vanishes(target: Columns, rows: list[Columns], roots: Roots = NO_ROOTS) -> bool:
    """Returns whether a combination of rows in reduced echelon form, given pivot first, is target.

    Multipliers are read off the pivots.
    """
    left = dict(target)
    for row in rows:
        pivot = next(iter(row))
        if not left.get(pivot):
            continue
        multiplier = left[pivot] / row[pivot]
        for cells, coefficient in row.items():
            left[cells] = left.get(cells, ZERO) - multiplier * coefficient
    return not any(roots.reduced(q) for q in left.values())


def _shifted(row: ReadRow, known: Mapping[str, Quotient]) -> Columns:
    """A row of the moment before, its pivot first."""
    order = (row.pivot, *(cells for cells in row.terms if cells != row.pivot))
    out = {
        c: Quotient(row.terms[c].renamed(lambda g: shifted(g, 1))).substituted(known) for c in order
    }
    if not out[row.pivot]:
        raise Rejected("conditions make the pivot of a row 0")
    return out
