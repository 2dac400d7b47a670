"""Claims of a mixer decided: the one public function of the package."""

from __future__ import annotations

from collections.abc import Callable

from dsfc import current_span
from dsfc.claims.compare import compare, impossible
from dsfc.claims.mixing import row_stochastic
from dsfc.claims.norm import stable
from dsfc.claims.same import same
from dsfc.claims.shape import causal, finite, of_class, time_invariant
from dsfc.claims.verdict import Decided, Unknown, Verdict
from dsfc.current_search import unheard
from dsfc.expr.statements import ClaimStatement, Comparison, Predicate, PredicateName
from dsfc.structure.ir import Structure
from dsfc.system.ir import System
from dsfc.trusted.entries import Obstacle


def decide(
    statements: tuple[ClaimStatement, ...],
    system: System,
    structure: Structure,
    other: Callable[[str], System],
    tell: Callable[[tuple[Decided, ...]], None] = unheard,
) -> tuple[Decided, ...]:
    """Decides the claims of a mixer, in order.

    "Proved" rests on ranges, structure, a lemma whose hypotheses are checked, or a certificate that
    the trusted kernel accepts. "Refuted" rests on a point at which the claim was executed with
    exact numbers or proven bounds, or on the derived system where the claim is about that system
    (`class`, `finite`). Everything else is "unknown".

    Args:
        statements: the claims, names bound.
        system: what they are about.
        structure: of the system.
        other: gives the system of another mixer by name; may raise a `DiagnosticError`.
        tell: takes the claims decided so far, whenever there is one more.
    """
    decided = list[Decided]()
    for statement in statements:
        with current_span.entered(statement.span):
            decided.append(Decided(statement, _verdict(statement, system, structure, other)))
        tell(tuple(decided))
    return tuple(decided)


def _verdict(
    statement: ClaimStatement, system: System, structure: Structure, other: Callable[[str], System]
) -> Verdict:
    try:
        never = impossible(system, structure, statement.when)
        if never is not None:
            return Unknown(f"`{never}` holds nowhere, so the claim says nothing")
        if isinstance(statement.what, Comparison):
            return compare(system, structure, statement.what, statement.when)
        return _predicate(statement.what, statement, system, structure, other)
    except Obstacle as e:
        return Unknown(str(e))
    except RecursionError:
        return Unknown("definitions are put into one another too deeply")


def _predicate(
    what: Predicate,
    statement: ClaimStatement,
    system: System,
    structure: Structure,
    other: Callable[[str], System],
) -> Verdict:
    match what.word:
        case PredicateName.STABLE:
            return stable(system, structure, statement.when)
        case PredicateName.CAUSAL:
            return causal(system, structure, statement.when)
        case PredicateName.TIME_INVARIANT:
            return time_invariant(system, structure, statement.when)
        case PredicateName.ROW_STOCHASTIC:
            return row_stochastic(system, structure, statement.when, what.about)
        case PredicateName.FINITE:
            return finite(structure)
        case PredicateName.CLASS:
            return of_class(structure, what.about or "")
        case PredicateName.EQUIVALENT:
            return same(system, other(what.about or ""), statement.when)
