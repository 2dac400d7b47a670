"""What can be said of two systems, as values."""

from __future__ import annotations

from dataclasses import dataclass

from dsfc.trusted.claim import (
    Assumed,
    Certificate,
    Conditional,
    ConstantSequence,
    Invariant,
    MarkovParameters,
    Same,
    SeparatingSequences,
    Somewhere,
    TwoWays,
    Witness,
)
from dsfc.trusted.witness import Gap


@dataclass(frozen=True, slots=True)
class Equal:
    """The outputs are equal; the kernel accepted it.

    They are wherever both have values, at the point of the certificate for one.

    Attributes:
        certificate: the claim and its proof, and where both outputs have values.
        unseen: why no such point is shown: a definition cannot be executed.
    """

    certificate: Certificate
    unseen: str = ""

    @property
    def fixed(self) -> tuple[tuple[str, int], ...]:
        """The axes that it speaks of at one size alone, with this size; copies are left out."""
        claim = self.certificate.claim
        axes = (d.axis for system in (claim.a, claim.b) for d in system.axes)
        left_out = {axis.name for axis in axes if axis.copy_of} | set(claim.every)
        return tuple((name, size) for name, size in claim.sizes if name not in left_out)

    @property
    def proof(self) -> object:
        """What shows it, of what is left of both where something is assumed."""
        proof = self.certificate.proof
        return proof.proof if isinstance(proof, Assumed) else proof

    @property
    def invariant(self) -> Invariant:
        """The rows that vanish on the states; none where something else was shown."""
        match self.proof:
            case Invariant() as proof:
                return proof
            case MarkovParameters(entries=entries):
                return Invariant((), entries)
            case TwoWays(rows=rows):
                return rows
        return Invariant((), False)

    @property
    def same(self) -> bool:
        """Whether the definitions are one text up to names."""
        return isinstance(self.proof, Same)

    @property
    def rule(self) -> str:
        """What kind of proof it is, in a word."""
        match self.proof:
            case Same():
                return "same"
            case MarkovParameters():
                return "markov"
            case TwoWays():
                return "two ways"
        return "invariant"

    @property
    def how(self) -> str:
        """What the kernel accepted, in words."""
        match self.proof:
            case Same():
                return "one definition up to names"
            case MarkovParameters(count):
                return f"{count} Markov parameters"
            case TwoWays(pairs, rows):
                each = sum(len(pair.rows.rows) for pair in pairs)
                return f"{each} rows of backward states, {len(rows.rows)} of the outputs"
        return f"{len(self.invariant.rows)} rows"


@dataclass(frozen=True, slots=True)
class Proved(Equal):
    """The outputs are equal at all sizes of all axes."""


@dataclass(frozen=True, slots=True)
class AtSizes(Equal):
    """The outputs are equal at some sizes of the axes that are `fixed`; others are open."""


@dataclass(frozen=True, slots=True)
class ProvedWhereDefined:
    """The outputs are equal where both have values, and somewhere one has a value and one none.

    Attributes:
        proved: what is proved.
        point: where one of the two has no value.
        second: whether that is the second.
    """

    proved: Proved | AtSizes
    point: Somewhere
    second: bool

    @property
    def certificate(self) -> Certificate:
        """The certificate of the proof."""
        return self.proved.certificate

    @property
    def obstacle(self) -> str:
        """Why the two are not one function."""
        lacks, has = ("second", "first") if self.second else ("first", "second")
        return (
            "the outputs are equal wherever both have values, but there is a point at which the "
            f"{lacks} has none and the {has} has one"
        )


@dataclass(frozen=True, slots=True)
class Refuted:
    """The outputs are apart at a point; the kernel executed both definitions there.

    Attributes:
        certificate: the claim and the point.
        gap: the two values.
        shortest: whether shorter sequences were shown to give equal outputs at these sizes.
    """

    certificate: Certificate
    gap: Gap
    shortest: bool

    @property
    def witness(self) -> Witness:
        """The point."""
        proof = self.certificate.proof
        point = proof.proof if isinstance(proof, Assumed) else proof
        assert isinstance(point, Witness)
        return point


@dataclass(frozen=True, slots=True)
class Unknown:
    """Neither was shown.

    Attributes:
        obstacle: the first thing that stood in the way.
        tried: what was done.
        decides: what would decide it.
    """

    obstacle: str
    tried: tuple[str, ...]
    decides: str


@dataclass(frozen=True, slots=True)
class Conditionally:
    """The outputs are equal where conditions hold; the kernel accepted the certificate.

    Attributes:
        certificate: the claim with its conditions, the invariant and the points.
        otherwise: what is known without conditions.
    """

    certificate: Certificate
    otherwise: Refuted | Unknown

    @property
    def proof(self) -> Conditional:
        """The invariant and the points."""
        assert isinstance(self.certificate.proof, Conditional)
        return self.certificate.proof


@dataclass(frozen=True, slots=True)
class Instance:
    """The first is a case of the second; the kernel accepted it.

    Attributes:
        certificate: the claim, with the values of the second's own parameters as conditions, and
            where the first has an output.
        unseen: why no such point is shown: the definition cannot be executed.
    """

    certificate: Certificate
    unseen: str = ""


@dataclass(frozen=True, slots=True)
class NotAnInstance:
    """No parameters of the second give what the first does; the kernel accepted it.

    Attributes:
        certificate: the claim, with a point of the first.
    """

    certificate: Certificate

    @property
    def proof(self) -> ConstantSequence | SeparatingSequences:
        """The point and its sequences."""
        assert isinstance(self.certificate.proof, ConstantSequence | SeparatingSequences)
        return self.certificate.proof

    @property
    def reads(self) -> int | None:
        """How far back the functions read that are excluded as slots; None: any functions.

        On sequences of k tokens a function of the token and the k - 1 before it is any function.
        """
        locality, proof = self.certificate.claim.locality, self.certificate.proof
        if locality is None or not isinstance(proof, SeparatingSequences):
            return None
        return None if locality + 1 >= max(map(len, proof.sequences)) else locality


Verdict = Proved | AtSizes | ProvedWhereDefined | Refuted | Unknown | Conditionally
