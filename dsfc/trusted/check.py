"""Reading a certificate and checking it: the one public function of the package."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from dsfc.expr.json import decode, encode
from dsfc.system.ir import MaxPlus, System
from dsfc.trusted.alpha_rename import alpha_rename
from dsfc.trusted.claim import (
    Assumed,
    Certificate,
    Claim,
    Conditional,
    Invariant,
    Point,
    Same,
    Somewhere,
    Witness,
)
from dsfc.trusted.derived import check_derived
from dsfc.trusted.entries import Obstacle
from dsfc.trusted.invariant import check_invariant
from dsfc.trusted.legal import check_sizes
from dsfc.trusted.polynomial import TooLarge
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.rules import RULES
from dsfc.trusted.same import check_same
from dsfc.trusted.schema import check_form, form
from dsfc.trusted.witness import Gap, check_somewhere, check_witness

SIZE_LIMIT = 8_000_000
"""Bytes of a certificate."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """A certificate that shows its claim.

    Attributes:
        claim: what is shown.
        gap: the two values, where difference is shown.
        defined: a point at which both outputs have values, where equality is shown and one is
            given. It is shown wherever both have. Where the first is shown to be a case of the
            second, one at which the first has.
        holds: a point at which all conditions hold and the output is not 0, where equality under
            conditions is shown and one is given.
    """

    claim: Claim
    gap: Gap | None
    defined: Somewhere | None
    holds: Point | None = None


def check(text: str) -> Accepted:
    """Checks a certificate.

    Args:
        text: JSON, as `write` gives it.

    Raises:
        OtherFormat: it is of another version.
        Rejected: it does not show its claim; the text says why.
    """
    certificate = read(text)
    try:
        gap = _checked(certificate)
        # Of systems that a rule found well formed: the derivation reads what a mixer may hold.
        check_derived(certificate.claim)
        if certificate.defined is not None:
            check_somewhere(certificate.claim, certificate.defined)
        proof = certificate.proof
        holds = proof.holds if isinstance(proof, Conditional) else None
        return Accepted(certificate.claim, gap, certificate.defined, holds)
    except Rejected:
        raise
    except (Obstacle, TooLarge) as e:
        raise Rejected(f"the claim is beyond this kernel: {e}") from None
    except RecursionError:
        raise Rejected("the claim is nested too deeply") from None
    except ZeroDivisionError:
        raise Rejected("a denominator is 0") from None
    # A System that `decode` accepts may still make no sense: axes that are not there, cycles.
    except (ValueError, TypeError, LookupError, AttributeError, StopIteration) as e:
        raise Rejected(f"a system is malformed: {e}") from None


def _checked(certificate: Certificate) -> Gap | None:
    """Checks a certificate by the rule of its proof; returns the gap that a witness shows."""
    claim, proof = alpha_rename(certificate.claim), certificate.proof
    check_sizes(claim)
    if claim.assumed and not isinstance(proof, Assumed):
        raise Rejected("something is assumed, of which this rule says nothing")
    if claim.functions and not (claim.case and claim.equal):
        raise Rejected("functions are listed that no value is made of")
    if not isinstance(proof, Same | Witness | Invariant) and any(
        map(_has_maximum, (claim.a, claim.b))
    ):
        raise Rejected("a state is a running maximum, of which this rule says nothing")
    match proof:
        case Invariant():
            check_invariant(claim, proof)
        case Same():
            check_same(claim)
        case Witness():
            return check_witness(claim, proof)
        case _:
            return RULES[type(proof)](claim, proof)
    return None


def _has_maximum(system: System) -> bool:
    """Whether a state is a running maximum: it is no linear function of anything."""
    held = (s.value for s in system.streams)
    return any(isinstance(v, MaxPlus) for v in held) or any(d.maximum for d in system.definition)


def write(certificate: Certificate) -> str:
    """Returns the text of a certificate: the same for equal certificates, on every machine."""
    document = {"format": form(), **encode(certificate)}
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")) + "\n"


def read(text: str) -> Certificate:
    """Returns a certificate, unchecked.

    Raises:
        OtherFormat: it is of another version.
        Rejected: the text is no certificate.
    """
    if len(text) > SIZE_LIMIT:
        raise Rejected(f"the certificate is longer than {SIZE_LIMIT} characters")
    try:
        document = json.loads(text, object_pairs_hook=_once, parse_constant=_refused)
    except RecursionError:
        raise Rejected("the certificate is nested too deeply") from None
    except ValueError as e:
        raise Rejected(f"not JSON: {e}") from None
    if not isinstance(document, dict) or "format" not in document:
        raise Rejected("not a certificate")
    check_form(document["format"])
    if set(document) != {"format", "axes", "nodes", "value"}:
        raise Rejected("not a certificate: it has other parts")
    try:
        certificate: Certificate = decode(document, Certificate)
    except (ValueError, OverflowError, RecursionError) as e:
        raise Rejected(f"not a certificate: {e}") from None
    return certificate


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return out


def _refused(name: str) -> None:
    raise ValueError(f"{name} is not a number")
