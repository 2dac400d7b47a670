"""Whether one mixer is a case of another: whatever its parameters are, some of the other's do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from dsfc.check_proof.check import check, write
from dsfc.check_proof.claim import Certificate, Claim, Conditional, Invariant
from dsfc.check_proof.comparable import OTHER, slots
from dsfc.check_proof.entries import Obstacle
from dsfc.check_proof.polynomial import TooLarge
from dsfc.check_proof.rejected import Rejected
from dsfc.check_proof.statement import state
from dsfc.primitives.declarations import Tensor
from dsfc.primitives.expr import Field
from dsfc.proof.closure import Differs, close
from dsfc.proof.conditions import candidates
from dsfc.proof.constant_word import no_case
from dsfc.proof.equivalent import equivalent
from dsfc.proof.sizes import chosen
from dsfc.proof.verdict import Case, Conditionally, NoCase, Proved, Unknown, Verdict
from dsfc.proof.words import no_case_by_words
from dsfc.system.ir import System, Term

Within = Case | NoCase | Unknown


@dataclass(frozen=True, slots=True)
class Kinds:
    """What is known of two mixers, kind by kind; a kind that another one implies is left out.

    Attributes:
        equal: EQ, equal outputs for equal parameters, or COND, where conditions were asked for.
        forth: SUB, whether the first is a case of the second.
        back: SUB with the two exchanged.
        slots: inputs that the second alone has, and that the first alone has. Where there are some
            SUB is SLOT: they are taken for functions of the last tokens, to be chosen.
    """

    equal: Verdict
    forth: Within | None
    back: Within | None
    slots: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())


def kinds(
    a: System, b: System, names: tuple[tuple[str, str], ...] = (), conditions: bool = False
) -> Kinds:
    """Decides whether two mixers are equal, and if not, whether one is a case of the other.

    Args:
        a: one mixer.
        b: the other.
        names: name in b → name in a, see `dsfc.proof.equivalent.equivalent`.
        conditions: whether conditions are looked for too, those that make one a case among them.
    """
    verdict = equivalent(a, b, names, conditions)
    if isinstance(verdict, Proved):
        return Kinds(verdict, None, None)
    forth: Within
    if isinstance(verdict, Conditionally) and verdict.certificate.claim.case:
        forth = Case(verdict.certificate)
    else:
        forth = within(a, b, names, conditions)
    backwards = tuple(sorted((ours, theirs) for theirs, ours in names))
    own = tuple(
        tuple(slots(Claim(pair[0], pair[1], pair[2], ())))
        for pair in ((a, b, names), (b, a, backwards))
    )
    return Kinds(verdict, forth, within(b, a, backwards, conditions), (own[0], own[1]))


def within(
    a: System, b: System, names: tuple[tuple[str, str], ...] = (), conditions: bool = False
) -> Within:
    """Decides whether a is a case of b: for all values of a's parameters, some of b's do the same.

    Inputs that b alone has are slots: functions of the last tokens are looked for, or excluded.

    Both answers rest on the checker alone.

    Args:
        a: the mixer that may be a case.
        b: the mixer whose parameters are looked for.
        names: see `dsfc.proof.equivalent.equivalent`.
        conditions: whether values of b's own parameters are looked for, which may take minutes.
    """
    found = _no_case(no_case, Claim(a, b, names, chosen(a, b, 1)))
    if isinstance(found, str) and any(t.matrix is not None for t in _terms(a)):
        larger = _no_case(no_case, Claim(a, b, names, chosen(a, b, 2)))
        found = larger if isinstance(larger, Certificate) else found
    if isinstance(found, Certificate):
        return NoCase(found)
    tried = [f"constant sequences: {found}"]
    if conditions:
        claim = Claim(a, b, names, chosen(a, b, 2))
        shown = _case(claim)
        other = replace(claim, names=_apart(claim))
        if isinstance(shown, str) and other.names != names:
            again = _case(other)
            shown = again if isinstance(again, Certificate) else shown
        if isinstance(shown, Certificate):
            return Case(shown)
        tried.append(f"values of the second's own parameters: {shown}")
    # Functions of more than the token may be a case where those of the token are none.
    apart = _no_case(no_case_by_words, Claim(a, b, names, chosen(a, b, 1)))
    if isinstance(apart, Certificate):
        return NoCase(apart)
    tried.append(f"short sequences: {apart}")
    decides = "values of the second's parameters (--conditions), or a reason that there are none"
    return Unknown(str(found), tuple(tried), decides)


def _no_case(rule: Callable[[Claim], Certificate | str], claim: Claim) -> Certificate | str:
    try:
        return rule(claim)
    except (Obstacle, ValueError) as e:
        return str(e)


def _terms(system: System) -> Iterator[Term]:
    """What updates of states are made of; a matrix of one entry couples nothing."""
    for block in system.blocks:
        for factor in block.chain:
            yield from factor.terms


def _apart(claim: Claim) -> tuple[tuple[str, str], ...]:
    """Names with which real parameters that are no maps are b's own, though a has them too."""
    taken, theirs = dict(claim.names), {t.name for t in claim.a.params}
    shared = (
        t.name
        for t in claim.b.params
        if isinstance(t, Tensor) and t.field is Field.REAL and t.name in theirs
    )
    return (*claim.names, *((n, OTHER + n) for n in shared if n not in taken))


def _case(claim: Claim) -> Certificate | str:
    """A certificate that a is a case of b, which the checker accepted, or why there is none."""
    try:
        for conditions in candidates(replace(claim, case=True)):
            at = replace(claim, conditions=conditions, case=True)
            with suppress(Rejected, Obstacle, ZeroDivisionError):
                rows = close(state(at, False))
                if isinstance(rows, Differs):
                    continue
                certificate = Certificate(at, Conditional(Invariant(rows, False), None, ()))
                check(write(certificate))
                return certificate
    except (Obstacle, TooLarge, ValueError, ZeroDivisionError) as e:
        return str(e)
    return "none were found"
