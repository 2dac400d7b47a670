"""The identities of certificates, decided again by z3 in arithmetic of its own.

Of a stored invariant two kinds of identity carry the proof: a row after a token vanishes where the
rows before it do, and so does the difference of the outputs. Here generators and states are real
numbers, an update is an equation for the state after it, and z3 is asked for numbers where what
must vanish does not. Certificates in complex numbers are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from dsfc.trusted.claim import Certificate, Coefficient, Row
from dsfc.trusted.generator_names import shifted
from dsfc.trusted.polynomial import IMAGINARY, Polynomial, Quotient
from dsfc.trusted.statement import WrittenClaim, state

pytestmark = pytest.mark.ci
z3 = pytest.importorskip("z3")

PAIRS = [
    ("attention", "post", "eta_gauge"),
    ("attention", "as_state", "transposed"),
    ("attention", "ratio_of_states", "ratio_gauged"),
    ("attention", "normed", "normed_state"),
    ("gates", "softplus_gate", "sigmoid_gate"),
    ("linear", "sum_of_modes", "chain_delayed"),
    ("linear", "taps_three", "taps_three_states"),
    ("linear", "delta_rule", "delta_gauged"),
]
MILLISECONDS = 5_000


class Numbers:
    """z3's view of one token: a variable for each generator, state entry and quotient.

    Attributes:
        facts: what holds between them.
    """

    def __init__(self, statement: WrittenClaim) -> None:
        self.facts: list = []
        self._known: dict[str, object] = {}
        self.after = {cell: self.quotient(q) for cell, q in statement.steady.step.items()}

    def variable(self, name: str):
        assert name != IMAGINARY
        if name not in self._known:
            self._known[name] = z3.Real(name)
        return self._known[name]

    def _inverse(self, name: str):
        if f"1/{name}" not in self._known:
            self._known[f"1/{name}"] = z3.Real(f"1/{name}")
            self.facts.append(self._known[f"1/{name}"] * self.variable(name) == 1)
        return self._known[f"1/{name}"]

    def polynomial(self, p: Polynomial):
        total = z3.RealVal(0)
        for m, c in p.terms.items():
            term = z3.Q(c.numerator, c.denominator)
            for name, e in m:
                for _ in range(abs(e)):
                    term = term * (self.variable(name) if e > 0 else self._inverse(name))
            total = total + term
        return total

    def quotient(self, q: Quotient):
        """A variable whose product with the denominator is the numerator."""
        if not q.den:
            return self.polynomial(q.num)
        below = z3.RealVal(1)
        for base, e in q.den.items():
            value = self.polynomial(base)
            self.facts.append(value != 0)
            for _ in range(e):
                below = below * value
        out = z3.Real(f"quotient {len(self.facts)}")
        self.facts.append(out * below == self.polynomial(q.num))
        return out

    def coefficient(self, stored: Coefficient, lag: int):
        total = z3.RealVal(0)
        for m, c in stored:
            term = z3.IntVal(c)
            for name, e in m:
                for _ in range(e):
                    term = term * self.variable(shifted(name, lag))
            total = total + term
        return total

    def row(self, row: Row, before: bool):
        """The value of a row on the states before the token, or after it."""
        total = z3.RealVal(0)
        for cells, coefficient in row.terms:
            term = self.coefficient(coefficient, int(before))
            for cell in cells:
                term = term * (self.variable(cell) if before else self.after[cell])
            total = total + term
        return total

    def pivot(self, row: Row):
        return self.coefficient(dict(row.terms)[row.pivot], 1)


def goals(made: Certificate, rows: tuple[Row, ...]) -> Iterator[object]:
    """What z3 says of each identity, the rows before the token being those given."""
    statement = state(made.claim, made.proof.entries)
    numbers = Numbers(statement)
    zero = [numbers.row(row, True) == 0 for row in rows]
    pivots = [numbers.pivot(row) != 0 for row in rows]
    wanted = [numbers.row(row, False) for row in made.proof.rows]
    wanted += [numbers.quotient(a - b) for a, b in statement.steady.outputs]
    for value in wanted:
        solver = z3.SolverFor("QF_NRA")
        solver.set("timeout", MILLISECONDS)
        solver.add(*numbers.facts, *zero, *pivots, value != 0)
        yield solver.check()


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_z3_finds_no_point_against_a_certificate(certificate: Callable, pair) -> None:
    made = certificate(*pair)
    found = list(goals(made, made.proof.rows))
    assert len(found) >= len(made.proof.rows) + 1
    assert {str(answer) for answer in found} == {"unsat"}


@pytest.mark.parametrize("pair", PAIRS[:2] + PAIRS[6:7], ids="-".join)
def test_z3_finds_one_where_rows_are_missing(certificate: Callable, pair) -> None:
    made = certificate(*pair)
    assert "sat" in map(str, goals(made, ()))
