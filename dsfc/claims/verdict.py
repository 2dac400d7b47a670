"""What can be said of a claim, as values."""

from __future__ import annotations

from dataclasses import dataclass, field

from dsfc.expr.statements import ClaimStatement
from dsfc.trusted.claim import Certificate


@dataclass(frozen=True, slots=True)
class Proved:
    """The claim holds.

    Attributes:
        by: what shows it, as a clause.
        certificate: where an equality of two systems is part of it: what `check-proof` accepts.
    """

    by: str
    certificate: Certificate | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Refuted:
    """The claim does not hold.

    Attributes:
        shown: what was executed and came out, as a clause.
        point: the point at which it was executed, as text; empty for a fact about the system.
        certificate: where a difference of two systems is what refutes it.
    """

    shown: str
    point: str = ""
    certificate: Certificate | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Unknown:
    """Neither was shown.

    Attributes:
        obstacle: what stood in the way, as a clause.
    """

    obstacle: str


Verdict = Proved | Refuted | Unknown


@dataclass(frozen=True, slots=True)
class Decided:
    """A claim with what was found."""

    statement: ClaimStatement
    verdict: Verdict
