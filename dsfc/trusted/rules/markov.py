"""Rule "markov-parameters": systems that stay the same are compared by finitely many products.

Let z be the state entries of both systems, w the window of the statement. From token w on let
z_i = Λ z_{i-1} + f_i, where Λ holds parameters alone, and let o_i z_{i-1} + d_i be the difference
of two outputs; f, o and d may hold anything of their last tokens. Unrolled, that is

    d_i + Σ_{w ≤ j < i} o_i Λ^{i-1-j} f_j + o_i Λ^{i-w} z_{w-1}      for i ≥ w.

The Markov parameters o_i Λ^l f_j are taken for tokens i and j that have nothing in common. The
*reach* of o is the least set of entries that holds those of o and, with each entry, those that its
update reads. Four things are checked, each by exact arithmetic:

1. Λ is the same at all tokens, updates and outputs are affine in the states;
2. the outputs are equal at the first w tokens, and d is 0;
3. o Λ^l f = 0 for all l < M, M the number of entries in reach;
4. o Λ^l z_{w-1} = 0 for all l < M.

o Λ^l has entries in reach alone, so it is o times a power of an M × M matrix. By Cayley and
Hamilton that power is, for l ≥ M, a combination of the powers below M, over the field of quotients
in parameters. So 3 and 4 hold for all l, and the difference is 0 at every token: an identity for
tokens that have nothing in common is one for all tokens. Nothing is stored but M; it is what every
kernel finds, and a certificate with another number is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from dsfc.trusted.claim import Claim, MarkovParameters
from dsfc.trusted.generator_names import CALL, LAG, lags
from dsfc.trusted.invariant import check_every, check_plain, columns, difference, rolled_out
from dsfc.trusted.polynomial import ZERO, Quotient, total
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.small_model_bound import unproved
from dsfc.trusted.statement import WrittenClaim, state

NOT_ZERO = "a Markov parameter is not 0"
"""Why systems are refused that differ."""

Vector = Mapping[str, Quotient]
"""State entry → coefficient or value; entries that are left out have 0."""


def check_markov(claim: Claim, proof: MarkovParameters) -> None:
    """Checks a certificate of equality.

    Raises:
        Rejected: a check failed.
        Obstacle, ValueError: the claim has no meaning here.
    """
    check_plain(claim, "markov-parameters")
    markov = Markov(state(claim, proof.entries))
    if markov.count != proof.count:
        raise Rejected(f"{markov.count} Markov parameters tell such systems apart")
    if markov.differs_at() is not None:
        raise Rejected(NOT_ZERO)
    check_every(claim, unproved(claim, proof.entries))


@dataclass(frozen=True, slots=True)
class Affine:
    """Σ coefficient · state entry + constant."""

    coefficients: Vector
    constant: Quotient


class Markov:
    """Both systems of a claim side by side, their transition being the same at all tokens.

    Raises:
        Rejected: the transition is not the same, or something is not affine in the states: a
            product, a quotient. Of outputs this is raised where they are asked for.
    """

    def __init__(self, statement: WrittenClaim) -> None:
        """Reads Λ and f off the steady step."""
        self.statement = statement
        steps = {name: affine(q) for name, q in statement.steady.step.items()}
        for step in steps.values():
            if any(lags(q.names) for q in step.coefficients.values()):
                raise Rejected("a transition is not the same at all tokens")
            if any(CALL in name for name in step.constant.names):
                raise Rejected("an update holds a function of states")
        self.transition = {name: step.coefficients for name, step in steps.items()}
        self.drive = {name: _elsewhere(step.constant) for name, step in steps.items()}

    @cached_property
    def differences(self) -> list[Affine]:
        """The row o and the value d of each output."""
        return [affine(difference(a, b)) for a, b in self.statement.steady.outputs]

    @cached_property
    def count(self) -> int:
        """M, the largest over the outputs."""
        return max((len(self._reach(o.coefficients)) for o in self.differences), default=0)

    def differs_at(self) -> int | None:
        """Returns at which token the outputs differ as functions of free generators, None if never.

        Tokens that are the same for o and f may make it a later one.
        """
        window = self.statement.window
        try:
            start = rolled_out(self.statement)
        except Rejected:
            return 0
        start = {name: _elsewhere(q) for name, q in start.items()}
        if any(o.constant for o in self.differences):
            return window
        rows = [o.coefficients for o in self.differences]
        for power in range(self.count):
            # A row that begins at the start sees what is driven one token later.
            if any(_applied(row, start) for row in rows):
                return window + power
            if any(_applied(row, self.drive) for row in rows):
                return window + power + 1
            rows = [self._back(row) for row in rows]
        return None

    def _reach(self, row: Vector) -> frozenset[str]:
        reached: set[str] = set()
        left = [name for name, q in row.items() if q]
        while left:
            name = left.pop()
            if name not in reached:
                reached.add(name)
                left += [read for read, q in self.transition[name].items() if q]
        return frozenset(reached)

    def _back(self, row: Vector) -> Vector:
        """A row times Λ."""
        out: dict[str, Quotient] = {}
        for name, q in row.items():
            if q:
                for read, coefficient in self.transition[name].items():
                    out[read] = out.get(read, ZERO) + q * coefficient
        return out


def affine(q: Quotient) -> Affine:
    """Returns a value as one that is affine in the states before the token.

    Raises:
        Rejected: values of states are multiplied.
        ValueError: a state stands in a denominator.
    """
    coefficients: dict[str, Quotient] = {}
    constant = ZERO
    for cells, coefficient in columns(q).items():
        if len(cells) > 1:
            raise Rejected("values of states are multiplied")
        if cells:
            coefficients[cells[0]] = coefficient
        else:
            constant = coefficient
    return Affine(coefficients, constant)


def _applied(row: Vector, values: Vector) -> Quotient:
    return total(q * values[name] for name, q in row.items() if q)


def _elsewhere(q: Quotient) -> Quotient:
    """A value with generators of tokens that are none of those that an output reads."""
    return q.renamed(lambda name: LAG.sub(r"@elsewhere \1", name))
