"""Reading a certificate and checking it: the one public function of the package."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from dsfc.check_proof.claim import FORMAT, Certificate, Claim, Conditional, Invariant, Same
from dsfc.check_proof.conditional import check_conditional
from dsfc.check_proof.entries import Obstacle
from dsfc.check_proof.invariant import check_invariant
from dsfc.check_proof.polynomial import TooLarge
from dsfc.check_proof.rejected import Rejected
from dsfc.check_proof.same import check_same
from dsfc.check_proof.witness import Gap, check_witness
from dsfc.primitives.json import decode, encode

SIZE_LIMIT = 8_000_000
"""Bytes of a certificate."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """A certificate that shows its claim.

    Attributes:
        claim: what is shown.
        gap: the two values, where difference is shown.
    """

    claim: Claim
    gap: Gap | None


def check(text: str) -> Accepted:
    """Checks a certificate.

    Args:
        text: JSON, as `write` gives it.

    Raises:
        Rejected: it does not show its claim; the text says why.
    """
    certificate = read(text)
    try:
        if isinstance(certificate.proof, Invariant):
            check_invariant(certificate.claim, certificate.proof)
            return Accepted(certificate.claim, None)
        if isinstance(certificate.proof, Conditional):
            check_conditional(certificate.claim, certificate.proof)
            return Accepted(certificate.claim, None)
        if isinstance(certificate.proof, Same):
            check_same(certificate.claim)
            return Accepted(certificate.claim, None)
        return Accepted(certificate.claim, check_witness(certificate.claim, certificate.proof))
    except Rejected:
        raise
    except (Obstacle, TooLarge) as e:
        raise Rejected(f"the claim is beyond this checker: {e}") from None
    except RecursionError:
        raise Rejected("the claim is nested too deeply") from None
    except ZeroDivisionError:
        raise Rejected("a denominator is 0") from None
    # A System that `decode` accepts may still make no sense: axes that are not there, cycles.
    except (ValueError, TypeError, LookupError, AttributeError, StopIteration) as e:
        raise Rejected(f"a system is malformed: {e}") from None


def write(certificate: Certificate) -> str:
    """Returns the text of a certificate: the same for equal certificates, on every machine."""
    document = {"format": FORMAT, **encode(certificate)}
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")) + "\n"


def read(text: str) -> Certificate:
    """Returns a certificate, unchecked.

    Raises:
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
    if not isinstance(document, dict) or set(document) != {"format", "axes", "nodes", "value"}:
        raise Rejected("not a certificate")
    if document["format"] != FORMAT:
        raise Rejected(f"the format is not {FORMAT}")
    try:
        found: Certificate = decode(document, Certificate)
    except (ValueError, OverflowError, RecursionError) as e:
        raise Rejected(f"not a certificate: {e}") from None
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return out


def _refused(name: str) -> None:
    raise ValueError(f"{name} is not a number")
