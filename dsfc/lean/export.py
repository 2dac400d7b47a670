"""The identities of a proof by rows, and its induction over tokens, as a Lean 4 file.

Everything is over a field in which every generator is free: an entry of an input or parameter, an
exponential, a value of a linear map. What a generator stands for is said in comments. A `Run` holds
the values of one sequence and the equations of both mixers; the theorems say that in every run the
rows are 0 after each token and the outputs are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from math import lcm

from dsfc.lean.lemma import Fact, Lemma, NoIdentity, Relation, shown
from dsfc.lean.names import Names
from dsfc.lean.run import Run, heading
from dsfc.trusted.claim import Certificate, Invariant
from dsfc.trusted.conditions import read as polynomial
from dsfc.trusted.generator_names import STATE
from dsfc.trusted.laws import law
from dsfc.trusted.polynomial import (
    POLYNOMIAL_ONE,
    POLYNOMIAL_ZERO,
    ZERO,
    Monomial,
    Polynomial,
    Quotient,
    TooLarge,
    generator,
)
from dsfc.trusted.statement import Moment, WrittenClaim, state

LIMIT = 4_000_000
"""Characters of a file."""


class NotWritten(Exception):
    """A proof that has no form here; the text says why."""


def lean_text(certificate: Certificate) -> str:
    """Returns the identities of a certificate, and its induction, as a file of Lean 4 with Mathlib.

    Args:
        certificate: of equality by rows, one that the kernel accepts.

    Raises:
        NotWritten: it is of another kind, or too large.
    """
    claim, proof = certificate.claim, certificate.proof
    if (
        not isinstance(proof, Invariant)
        or not claim.equal
        or claim.conditions
        or claim.case
        or claim.assumed
    ):
        raise NotWritten("only a proof of equality by rows, without conditions, is written in Lean")
    try:
        statement = state(claim, proof.entries, tuple(map(law, proof.relations)))
        text = _File(certificate, proof, statement).text()
    except TooLarge as e:
        raise NotWritten(f"a polynomial is too large: {e}") from None
    except NoIdentity:
        raise NotWritten("an identity does not follow by substitution") from None
    if len(text) > LIMIT:
        raise NotWritten(f"the file has more than {LIMIT} characters")
    return text


class _File:
    """One file: names, equations, lemmas."""

    def __init__(self, certificate: Certificate, proof: Invariant, statement: WrittenClaim) -> None:
        self.claim, self.proof, self.statement = certificate.claim, proof, statement
        self.names = Names()
        self.window = statement.window
        self.cells = tuple(sorted(statement.steady.step))
        self.fields: dict[str, tuple[str, Polynomial, Polynomial]] = {}
        """Equation of a run → the variable, and what it is."""
        self.nonzero: dict[str, Polynomial] = {}

    # --- polynomials ------------------------------------------------------------------------------

    def _identifier(self, token: int | None, by: int = 0) -> Callable[[str], str]:
        """Names of the moment before a token; `by` is 1 where a row of that moment is meant."""

        def identifier(name: str) -> str:
            if STATE in name:
                return self.names.state(name, token, 1)
            return self.names.generator(name, token, by)

        return identifier

    def _parts(self, q: Quotient, token: int | None) -> tuple[Polynomial, Polynomial]:
        """Numerator and denominator, without negative exponents, of whole numbers."""
        if token == 0:
            q = q.substituted(dict.fromkeys(self.cells, ZERO))
        top, below = q.num, POLYNOMIAL_ONE
        for base, exponent in q.den.items():
            below = below * base.power(exponent)
        top, monomial, number = _cleared(top)
        below = below * monomial * _constant(number)
        new = self._identifier(token)
        return top.renamed(new), below.renamed(new)

    def _fact(self, key: str, value: str, q: Quotient, token: int | None) -> Fact:
        top, below = self._parts(q, token)
        fact = Fact(key, value, top, below)
        self.fields[key] = value, top, below
        if below != POLYNOMIAL_ONE:
            self.nonzero[f"{key}_ne"] = below
        return fact

    def _row(self, k: int, token: int | None, back: int) -> Polynomial:
        """A row after a token, or before it."""
        out = POLYNOMIAL_ZERO
        for cells, coefficient in self.proof.rows[k].terms:
            if any(e < 0 for m, _ in coefficient for _, e in m):
                raise NotWritten("a row divides by a generator")
            part = polynomial(coefficient).renamed(lambda g: self.names.generator(g, token, back))
            for cell in cells:
                part = part * generator(self.names.state(cell, token, back))
            out = out + part
        return out

    def _relation(self, k: int) -> Relation:
        """A row before a token, from the window on."""
        row = self.proof.rows[k]
        counts: dict[str, int] = {}
        for cell in row.pivot:
            name = self.names.state(cell, None, 1)
            counts[name] = counts.get(name, 0) + 1
        factor = polynomial(dict(row.terms)[row.pivot]).renamed(
            lambda g: self.names.generator(g, None, 1)
        )
        if factor != POLYNOMIAL_ONE:
            self.nonzero[f"row_{k}_ne"] = factor
        return Relation(f"row_{k}", self._row(k, None, 1), tuple(sorted(counts.items())), factor)

    # --- lemmas -----------------------------------------------------------------------------------

    def _step(self, moment: Moment, token: int | None) -> tuple[Fact, ...]:
        at = "" if token is None else f"_at_{token}"
        facts = []
        for cell in self.cells:
            value = self.names.state(cell, token, 0)
            base = self.names.variables[value].base
            facts.append(self._fact(f"step_{base}{at}", value, moment.step[cell], token))
        return tuple(facts)

    def _pairs(self, moment: Moment, token: int | None) -> Iterable[tuple[str, Fact, Fact]]:
        at = "" if token is None else f"_at_{token}"
        for k, (left, right) in enumerate(moment.outputs):
            sides = []
            for label, q in (("A", left), ("B", right)):
                base = f"{self._kind(k, moment)}_{label}_{k}"
                value = self.names.value(base, token)
                sides.append(self._fact(f"is_{base}{at}", value, q, token))
            yield f"equal_{k}{at}", sides[0], sides[1]

    def _kind(self, k: int, moment: Moment) -> str:
        arguments = len(moment.outputs) - self._outputs
        return "y" if k < len(moment.outputs) - arguments else "argument"

    @property
    def _outputs(self) -> int:
        sizes = dict(self.claim.sizes)
        out = 1
        for axis in self.claim.a.outputs[0].axes:
            out *= sizes[axis.name]
        return out

    def _lemmas(self) -> tuple[list[Lemma], list[Lemma], list[Lemma]]:
        """Of the first tokens, of rows at every later token, and of outputs there."""
        earlier: tuple[Fact, ...] = ()
        start: list[Lemma] = []
        for token, moment in enumerate(self.statement.first):
            for name, a, b in self._pairs(moment, token):
                goal = generator(a.value), generator(b.value)
                doc = f"Output or argument {name.split('_')[1]} is equal at token {token}."
                start.append(shown(name, doc, goal, (a, b, *earlier)))
            earlier = (*self._step(moment, token), *earlier)
        last = self.window - 1
        for k in range(len(self.proof.rows)):
            doc = f"Row {k} is 0 after token {last}."
            goal = self._row(k, last, 0), POLYNOMIAL_ZERO
            start.append(shown(f"start_{k}", doc, goal, earlier))
        steady = self._step(self.statement.steady, None)
        relations = tuple(map(self._relation, range(len(self.proof.rows))))
        kept = [
            shown(f"kept_{k}", f"Row {k} stays 0.", (self._row(k, None, 0), POLYNOMIAL_ZERO),
                  steady, relations)
            for k in range(len(self.proof.rows))
        ]  # fmt: skip
        equal = [
            shown(name, f"Output or argument {name.split('_')[1]} is equal where the rows are 0.",
                  (generator(a.value), generator(b.value)), (a, b), relations)
            for name, a, b in self._pairs(self.statement.steady, None)
        ]  # fmt: skip
        return start, kept, equal

    # --- text -------------------------------------------------------------------------------------

    def text(self) -> str:
        """The file."""
        start, kept, equal = self._lemmas()
        used = {name for x in (*kept, *equal) for name in x.reduction.factors}
        nonzero = {n: p for n, p in self.nonzero.items() if n in used or not n.startswith("row_")}
        run = Run(self.names, self.window, self.fields, nonzero)
        rows = [self._row(k, None, 1) for k in range(len(self.proof.rows))]
        return run.text(heading(self.claim, self.names), rows, start, kept, equal)


def _cleared(p: Polynomial) -> tuple[Polynomial, Polynomial, int]:
    """A polynomial times a monomial and a number, and these, so that it is one of whole numbers."""
    lowest: dict[str, int] = {}
    for m in p.terms:
        for name, e in m:
            lowest[name] = min(lowest.get(name, 0), e)
    monomial: Monomial = tuple(sorted((g, -e) for g, e in lowest.items() if e < 0))
    number = lcm(*(Fraction(c).denominator for c in p.terms.values()))
    factor = Polynomial({monomial: Fraction(1)})
    return p * factor * _constant(number), factor, number


def _constant(value: int) -> Polynomial:
    return Polynomial({(): Fraction(value)})
