"""Whether two systems compute the same function: the one public function of the package."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace

from dsfc.current_search import begins, unheard
from dsfc.expr.declarations import MapTensor, Tensor
from dsfc.prover.closure import Differs, close
from dsfc.prover.conditions import candidates
from dsfc.prover.defined import where_defined
from dsfc.prover.gauge import forced, with_gauge
from dsfc.prover.points import with_points
from dsfc.prover.refute import FURTHER, QUICK, THOROUGH, Effort, reads_back, refute
from dsfc.prover.relations import laws, relation
from dsfc.prover.sizes import (
    NONE_GIVEN,
    at_counts,
    beyond,
    check_given,
    chosen,
    declared,
    distinguishing_sizes,
    enough,
    examined,
    lifted,
    small,
    with_whole_roots,
)
from dsfc.prover.two_ways import DIFFER, NO_PROOF, enough_for_both, proof_at, runs_backwards
from dsfc.prover.verdict import AtSizes, Conditionally, Proved, Refuted, Unknown, Verdict
from dsfc.system.ir import System
from dsfc.trusted.alpha_rename import alpha_rename, own_names
from dsfc.trusted.check import check, write
from dsfc.trusted.claim import Certificate, Claim, Invariant, MarkovParameters, Same
from dsfc.trusted.comparable import comparable
from dsfc.trusted.entries import Obstacle
from dsfc.trusted.laws import Law
from dsfc.trusted.polynomial import TooLarge
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.rules.markov import NOT_ZERO, Markov
from dsfc.trusted.same import check_same
from dsfc.trusted.small_model_bound import small_model_bound
from dsfc.trusted.statement import WrittenClaim, state
from dsfc.trusted.witness import LENGTH_LIMIT, stored_axes

SMALL = 48
"""Terms of a coefficient of rows, where Markov parameters are another way."""

Tell = Callable[[Verdict, str], None]
"""Takes a verdict as soon as it is found, and what is still to be examined."""


def equivalent(
    a: System,
    b: System,
    names: tuple[tuple[str, str], ...] = (),
    conditions: bool = False,
    sizes: Mapping[str, int] = NONE_GIVEN,
    tell: Tell = unheard,
) -> Verdict:
    """Decides whether two systems give equal outputs for equal inputs and equal parameters.

    "Proved" is said of where both outputs have values, of which there is a point. "Proved" and
    "refuted" rest on the kernel alone: it accepted an invariant, or executed both definitions at
    a point. Everything that this version has no rule for is "unknown". What is
    proved of some sizes alone is `AtSizes`, after these and larger ones were examined: the sizes
    given, else those that the specs declare, else small ones.

    Args:
        a: one system.
        b: the other.
        names: name of an input or parameter of b → name in a that it is identified with; those
            left out stand for themselves.
        conditions: whether conditions under which they are equal are looked for where they are not
            equal in general.
        sizes: of some axes, by name; the question is about these sizes alone.
        tell: takes each verdict that stands when more is examined, which may take long.

    Raises:
        ValueError: there is no axis of a name, or no sizes with those given keep what is declared.
    """
    check_given(a, b, sizes)
    verdict = _in_general(a, b, names, sizes, tell)
    if isinstance(verdict, Proved | AtSizes):
        return where_defined(verdict)
    if conditions and isinstance(verdict, Refuted | Unknown):
        tell(verdict, "conditions under which they are equal")
        begins("conditions")
        with suppress(ValueError):
            return _under_conditions(Claim(a, b, names, ()), verdict, sizes)
    return verdict


def _under_conditions(
    claim: Claim, otherwise: Refuted | Unknown, fixed_sizes: Mapping[str, int]
) -> Conditionally | Refuted | Unknown:
    """A proof under conditions at the declared sizes, those of either spec where they differ."""
    certificates = list[Certificate]()
    for pinned in examined(claim.a, claim.b, fixed_sizes):
        sized = replace(claim, sizes=with_whole_roots(claim.a, claim.b, pinned))
        proved = _conditioned(sized)
        if proved is None:
            return otherwise
        certificates.append(proved)
    return Conditionally(certificates[0], otherwise)


def _conditioned(claim: Claim) -> Certificate | None:
    """A proof under conditions, on parameters alone or else on values inside both."""
    told = _told_apart(claim)
    for free in (False, True):
        at = replace(told if free else claim, free=free)
        try:
            for conditions in candidates(alpha_rename(at)):
                certificate = _proved_under(replace(at, conditions=conditions))
                if certificate is not None:
                    return certificate
        except (Obstacle, TooLarge, ValueError, ZeroDivisionError):
            continue
    return None


def _told_apart(claim: Claim) -> Claim:
    """The claim with parameters of one name and other axes told apart."""
    axes = {t.name: _axes(t) for t in claim.a.params}
    own = own_names(claim)
    clashing = (t.name for t in claim.b.params if axes.get(t.name, _axes(t)) != _axes(t))
    return replace(claim, apart=tuple(name for name in clashing if name in own))


def _axes(t: Tensor | MapTensor) -> tuple[str, ...]:
    return tuple(a.name for a in stored_axes(t))


def _proved_under(claim: Claim) -> Certificate | None:
    """A proof that the kernel accepted, with points; with a change of basis where there is one."""
    if not claim.conditions:
        return None
    needed = forced(alpha_rename(claim))
    wider = with_gauge(claim) if needed[0] else None
    proved = None if wider is None else _proved_for(wider, *needed)
    return proved or _proved_for(claim, *needed)


def _proved_for(
    claim: Claim, forced: tuple[int, ...], varied: tuple[str, ...]
) -> Certificate | None:
    """A proof under the conditions of a claim that the kernel accepted, with points.

    Args:
        claim: with conditions.
        forced: conditions that equal outputs force, by position.
        varied: the inputs for all values of which they are equal there.
    """
    try:
        plain = alpha_rename(claim)
        rows = close(state(plain, False))
        if isinstance(rows, Differs):
            return None
        proof = with_points(plain, Invariant(rows, False), forced, varied)
        if proof is None:
            return None
        certificate = Certificate(claim, proof)
        check(write(certificate))
        if claim.free:
            return certificate
        with suppress(Rejected):
            case = Certificate(replace(claim, case=True), proof)
            check(write(case))
            return case
    except (Obstacle, TooLarge, Rejected, ValueError, ZeroDivisionError):
        return None
    return certificate


def _in_general(
    a: System,
    b: System,
    names: tuple[tuple[str, str], ...],
    fixed_sizes: Mapping[str, int],
    tell: Tell,
) -> Verdict:
    begins("one text up to names")
    try:
        claim = Claim(a, b, names, chosen(a, b, 2, fixed_sizes))
        comparable(claim)
    except ValueError as e:
        return Unknown(str(e), (), "identify inputs and parameters by --map, or align the shapes")
    same = _same(claim)
    if same is not None:
        return same
    begins("short sequences")
    early = _refute(claim, QUICK, (chosen(a, b, 1, fixed_sizes),))
    if isinstance(early, Refuted):
        return early
    start = replace(claim, sizes=small(a, b, 2))
    begins("a proof over the values of linear maps")
    verdict = _prove(start, entries=False)
    if isinstance(verdict, Proved):
        return verdict
    if isinstance(verdict, AtSizes) and tell is not unheard:  # points take long to execute
        tell(where_defined(verdict), "sizes beyond these")
    at, values = declared(a, b, fixed_sizes), verdict
    if isinstance(verdict, AtSizes):  # then a proof at the declared sizes takes less than points
        early = _refute(claim, QUICK, at)
        if isinstance(early, Refuted):
            return early
        values = _prove_at_sizes(start, False, fixed_sizes, verdict)
        at = () if isinstance(values, AtSizes) else at
    begins("longer sequences and larger sizes")
    late = _refute_further(claim, fixed_sizes, verdict, at)
    if isinstance(late, Refuted):
        return late
    if isinstance(verdict, str):
        values = _prove_at_sizes(start, False, fixed_sizes, verdict)
    if isinstance(values, AtSizes):
        return values
    begins("a proof over the entries of matrices")
    other = _prove(start, entries=True)
    if isinstance(other, Proved):
        return other
    written_out = _prove_at_sizes(start, True, fixed_sizes, other)
    if isinstance(written_out, AtSizes):
        return written_out
    tried = (
        f"a linear invariant over the values of linear maps: {values}",
        f"a witness: {late}",
        f"a linear invariant over entries of the matrices: {written_out}",
    )
    return Unknown(values, tried, "a rule for the obstacle, or a witness by hand")


def _refute_further(
    claim: Claim,
    fixed_sizes: Mapping[str, int],
    verdict: AtSizes | str,
    at: tuple[tuple[tuple[str, int], ...], ...],
) -> Refuted | str:
    """A witness on more tokens than at first.

    Args:
        claim: an equality.
        fixed_sizes: sizes that the question is about.
        verdict: what came out at small sizes.
        at: the declared sizes, unless there are proofs at them; larger ones are tried too.
    """
    a, b = claim.a, claim.b
    counts = small_model_bound(claim, False)
    if isinstance(verdict, str):
        least = (
            *(chosen(a, b, k, fixed_sizes) for k in (1, 2)),
            *distinguishing_sizes(a, b, counts, fixed_sizes),
        )
        late = _refute(claim, THOROUGH, (*least, *at))
        if isinstance(late, Refuted):
            return late
        later = _refute_later(claim)
        if later is not None:
            return later
    fixed = [name for name, why in counts.items() if isinstance(why, str)]
    sizes = tuple(dict.fromkeys((*at, *beyond(a, b, fixed, fixed_sizes))))
    if not sizes:
        return "there are no larger sizes"
    found_further = _refute(claim, FURTHER, sizes)
    last = 1 + reads_back(claim, sizes)
    if isinstance(found_further, Refuted) or last <= FURTHER.longest:
        return found_further
    return _refute(claim, replace(FURTHER, shortest=last, longest=last), sizes)


def _prove_at_sizes(
    start: Claim, entries: bool, fixed_sizes: Mapping[str, int], verdict: AtSizes | str
) -> AtSizes | str:
    """A proof at the sizes given or declared, and for all of as many other axes as can be.

    Args:
        start: the claim at small sizes.
        entries: whether the proof writes linear maps out.
        fixed_sizes: sizes that the question is about.
        verdict: what came out at small sizes.
    """
    proofs = list[AtSizes]()
    for sizes in declared(start.a, start.b, fixed_sizes):
        at = at_counts(replace(start, sizes=sizes), entries)
        if isinstance(verdict, AtSizes) and _speaks_of(verdict, at):
            proofs.append(verdict)
            continue
        if isinstance(verdict, str) and at in enough(start, entries):
            return verdict
        proved = _proved_at(at, entries)
        if isinstance(proved, str):
            return f"{proved} ({_fixed(at)})"
        proofs.append(AtSizes(proved.certificate))  # rows may say more than the counts
    return proofs[0]


def _fixed(claim: Claim) -> str:
    return ", ".join(f"{name} = {k}" for name, k in claim.sizes if name not in claim.every)


def _speaks_of(verdict: AtSizes, claim: Claim) -> bool:
    """Whether a proof speaks of the sizes that a claim is about."""
    known = verdict.certificate.claim
    sizes = dict(claim.sizes)
    return all(sizes[name] == k for name, k in known.sizes if name not in known.every)


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


def _refute_later(claim: Claim) -> Refuted | None:
    """A witness at the first token at which Markov parameters say that outputs differ."""
    with suppress(Obstacle, TooLarge, Rejected, ValueError, ZeroDivisionError):
        token = Markov(state(claim, False)).differs_at()
        if token is not None and THOROUGH.longest <= token < LENGTH_LIMIT:
            effort = replace(THOROUGH, shortest=token + 1, longest=token + 1)
            return refute(claim, effort, (claim.sizes,))
    return None


def _refute(
    claim: Claim, effort: Effort, sizes: tuple[tuple[tuple[str, int], ...], ...]
) -> Refuted | str:
    """A witness that the kernel executed, or why there is none."""
    try:
        refuted = refute(claim, effort, sizes)
    except (Obstacle, ValueError) as e:
        return str(e)
    return refuted or f"the outputs agree where they were tried, on up to {effort.longest} tokens"


def _prove(claim: Claim, entries: bool) -> Proved | AtSizes | str:
    """A proof that the kernel accepted, for all sizes where these are enough, or why not."""
    sized = enough_for_both(claim, entries) if runs_backwards(claim) else enough(claim, entries)
    verdict: AtSizes | str = ""
    for at in sized:
        other = _proved_at(at, entries)
        if isinstance(other, Proved):
            return other
        if isinstance(verdict, str) and (not verdict or isinstance(other, AtSizes)):
            verdict = other
    return verdict


def _proved_at(claim: Claim, entries: bool) -> Proved | AtSizes | str:
    """A proof that the kernel accepted, at the sizes of the claim, or why there is none."""
    if runs_backwards(claim):
        try:
            return _accepted(proof_at(claim, entries))
        except NO_PROOF as e:
            return _obstacle(e)
    verdict = _proved_by(claim, entries, ())
    if not isinstance(verdict, str):
        return verdict
    try:
        related = laws(claim, entries)
    except Obstacle as e:
        return str(e)
    except (TooLarge, Rejected, ValueError, ZeroDivisionError):
        return verdict
    return _proved_by(claim, entries, related) if related else verdict


def _proved_by(claim: Claim, entries: bool, related: tuple[Law, ...]) -> Proved | AtSizes | str:
    """The same with laws for functions of states.

    Systems that stay the same have two proofs. Rows say more, so they come first as long as their
    coefficients stay small; those of full matrices grow.
    """
    try:
        statement = state(claim, entries, related)
    except (Obstacle, TooLarge, Rejected, ValueError, ZeroDivisionError) as e:
        return _obstacle(e)
    markov = None if related else _markov(statement)
    verdict = _by_rows(claim, statement, entries, related, SMALL if markov else None)
    if not isinstance(verdict, str) or markov is None or verdict == DIFFER:
        return verdict
    with suppress(Rejected, ValueError):
        # The kernel multiplies them out, which is the work there is: it is done once.
        other = _accepted(Certificate(claim, MarkovParameters(markov.count, entries)))
        if not isinstance(other, str):
            return other
        if NOT_ZERO in other:
            return DIFFER
    return _by_rows(claim, statement, entries, related, None)


def _markov(statement: WrittenClaim) -> Markov | None:
    """Both systems, where they stay the same over time."""
    with suppress(Rejected, ValueError):
        return Markov(statement)
    return None


def _by_rows(
    claim: Claim,
    statement: WrittenClaim,
    entries: bool,
    related: tuple[Law, ...],
    terms: int | None,
) -> Proved | AtSizes | str:
    """A linear invariant that the kernel accepted, or why there is none."""
    try:
        rows = close(statement, terms)
        if isinstance(rows, Differs):
            return DIFFER
        proof = Invariant(rows, entries, tuple(map(relation, related)))
        certificate = Certificate(lifted(claim, proof, statement), proof)
    except (Obstacle, TooLarge, Rejected, ValueError, ZeroDivisionError) as e:
        return _obstacle(e)
    return _accepted(certificate)


def _accepted(certificate: Certificate) -> Proved | AtSizes | str:
    try:
        check(write(certificate))
    except Rejected as e:
        return f"a proof was found that the trusted kernel does not accept: {e}"
    proved = AtSizes(certificate)
    return Proved(certificate) if not proved.fixed else proved


def _obstacle(e: Exception) -> str:
    match e:
        case TooLarge():
            return f"the closure needs {e}"
        case Obstacle() | Rejected():
            return str(e)
    return f"the outputs have no quotient: {e}"
