"""Whether two systems compute the same function: the one public function of the package."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from dsfc.check_proof.check import check, write
from dsfc.check_proof.claim import Certificate, Claim, Invariant, Same
from dsfc.check_proof.comparable import comparable
from dsfc.check_proof.entries import Obstacle
from dsfc.check_proof.laws import Law
from dsfc.check_proof.polynomial import TooLarge
from dsfc.check_proof.rejected import Rejected
from dsfc.check_proof.same import check_same
from dsfc.check_proof.statement import state
from dsfc.proof.closure import Differs, close
from dsfc.proof.conditions import candidates
from dsfc.proof.points import with_points
from dsfc.proof.refute import QUICK, THOROUGH, Effort, refute
from dsfc.proof.relations import laws, relation
from dsfc.proof.sizes import chosen, enough, lifted
from dsfc.proof.verdict import Conditionally, Proved, Refuted, Unknown, Verdict
from dsfc.system.ir import System


def equivalent(
    a: System, b: System, names: tuple[tuple[str, str], ...] = (), conditions: bool = False
) -> Verdict:
    """Decides whether two systems give equal outputs for equal inputs and equal parameters.

    "Proved" and "refuted" rest on the checker alone: it accepted an invariant, or executed both
    definitions at a point. Everything that this version has no rule for is "unknown".

    Args:
        a: one system.
        b: the other.
        names: name of an input or parameter of b → name in a that it is identified with; those
            left out stand for themselves.
        conditions: whether conditions under which they are equal are looked for where they are not
            equal in general.
    """
    verdict = _in_general(a, b, names)
    if conditions and not isinstance(verdict, Proved):
        assert isinstance(verdict, Refuted | Unknown)
        return _under_conditions(Claim(a, b, names, chosen(a, b, 2)), verdict)
    return verdict


def _under_conditions(claim: Claim, otherwise: Refuted | Unknown) -> Verdict:
    """A proof under conditions, on parameters alone or else on values inside both."""
    for free in (False, True):
        try:
            for conditions in candidates(replace(claim, free=free)):
                found = _proved_under(replace(claim, free=free, conditions=conditions))
                if found is not None:
                    return Conditionally(found, otherwise)
        except (Obstacle, TooLarge, ValueError, ZeroDivisionError):
            continue
    return otherwise


def _proved_under(claim: Claim) -> Certificate | None:
    """A proof that the checker accepted, with points."""
    if not claim.conditions:
        return None
    try:
        rows = close(state(claim, False))
        if isinstance(rows, Differs):
            return None
        proof = with_points(claim, Invariant(rows, False))
        if proof is None:
            return None
        certificate = Certificate(claim, proof)
        check(write(certificate))
        with suppress(Rejected):
            case = Certificate(replace(claim, case=True), proof)
            check(write(case))
            return case
    except (Obstacle, TooLarge, Rejected, ValueError, ZeroDivisionError):
        return None
    return certificate


def _in_general(a: System, b: System, names: tuple[tuple[str, str], ...]) -> Verdict:
    claim = Claim(a, b, names, chosen(a, b, 2))
    try:
        comparable(claim)
    except ValueError as e:
        return Unknown(str(e), (), "identify inputs and parameters by --map, or align the shapes")
    same = _same(claim)
    if same is not None:
        return same
    early = _refute(claim, QUICK)
    if isinstance(early, Refuted):
        return early
    found = _prove(claim, entries=False)
    if isinstance(found, Proved):
        return found
    late = _refute(claim, THOROUGH)
    if isinstance(late, Refuted):
        return late
    tried = [f"a linear invariant over the values of linear maps: {found}", f"a witness: {late}"]
    written_out = _prove(claim, entries=True)
    if isinstance(written_out, Proved):
        return written_out
    tried.append(f"a linear invariant over entries of the matrices: {written_out}")
    return Unknown(found, tuple(tried), "a rule for the obstacle, or a witness by hand")


def _same(claim: Claim) -> Proved | None:
    """A proof for all sizes where both definitions are one text up to names."""
    everywhere = replace(claim, every=tuple(name for name, _ in claim.sizes))
    certificate = Certificate(everywhere, Same())
    try:
        check_same(everywhere)  # without writing it first: most pairs are not the same
        check(write(certificate))
    except (Rejected, ValueError):
        return None
    return Proved(certificate)


def _refute(claim: Claim, effort: Effort) -> Refuted | str:
    """A witness that the checker executed, or why there is none."""
    try:
        found = refute(claim, effort)
    except (Obstacle, ValueError) as e:
        return str(e)
    return found or f"the outputs agree where they were tried, on up to {effort.longest} tokens"


def _prove(claim: Claim, entries: bool) -> Proved | str:
    """A proof that the checker accepted, for all sizes where these are enough, or why not."""
    found: Proved | str = ""
    for at in enough(claim, entries):
        other = _proved_at(at, entries)
        if isinstance(other, Proved):
            return other
        found = found or other
    return found


def _proved_at(claim: Claim, entries: bool) -> Proved | str:
    """A proof that the checker accepted, at the sizes of the claim, or why there is none."""
    found = _proved_by(claim, entries, ())
    if isinstance(found, Proved):
        return found
    try:
        related = laws(claim, entries)
    except Obstacle as e:
        return str(e)
    except (TooLarge, Rejected, ValueError, ZeroDivisionError):
        return found
    return _proved_by(claim, entries, related) if related else found


def _proved_by(claim: Claim, entries: bool, related: tuple[Law, ...]) -> Proved | str:
    """The same with laws for functions of states."""
    try:
        statement = state(claim, entries, related)
        rows = close(statement)
    except (Obstacle, Rejected) as e:
        return str(e)
    except TooLarge as e:
        return f"the closure needs {e}"
    except (ValueError, ZeroDivisionError) as e:
        return f"the outputs have no quotient: {e}"
    if isinstance(rows, Differs):
        return "the outputs differ as functions of free generators"
    proof = Invariant(rows, entries, tuple(map(relation, related)))
    try:
        certificate = Certificate(lifted(claim, proof, statement), proof)
        check(write(certificate))
    except Rejected as e:
        return f"an invariant was found that the checker does not accept: {e}"
    return Proved(certificate)
