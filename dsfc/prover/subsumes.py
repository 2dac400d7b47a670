"""Whether one mixer is a case of another: whatever its parameters are, some of the other's do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

from dsfc.current_search import begins, unheard
from dsfc.expr.build import walk
from dsfc.expr.declarations import Constraint, Tensor
from dsfc.expr.tree import Field, Param, Prim
from dsfc.prover.closure import Differs, close
from dsfc.prover.conditions import candidates
from dsfc.prover.constant_sequence import no_case
from dsfc.prover.defined import where_first_defined
from dsfc.prover.equivalent import equivalent
from dsfc.prover.factored_map import factored_map
from dsfc.prover.filters import filters
from dsfc.prover.maps_as_named import maps_as_named
from dsfc.prover.matched import WrittenOut, matched
from dsfc.prover.modal import modal
from dsfc.prover.sizes import NONE_GIVEN, chosen, examined, modest
from dsfc.prover.test_sequences import Tried, no_instance_by_test_sequences
from dsfc.prover.verdict import (
    Conditionally,
    Equal,
    Instance,
    NotAnInstance,
    ProvedWhereDefined,
    Unknown,
    Verdict,
)
from dsfc.system.ir import System, Term
from dsfc.trusted.alpha_rename import alpha_rename, own_names
from dsfc.trusted.check import check, write
from dsfc.trusted.claim import Certificate, Claim, Conditional, Invariant
from dsfc.trusted.comparable import comparable, slots
from dsfc.trusted.entries import Obstacle
from dsfc.trusted.generalize_inputs import expressions
from dsfc.trusted.polynomial import TooLarge
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.rules.constant_sequence import own_axes
from dsfc.trusted.statement import state

ATTEMPTS = 16
"""Sets of values of one search that are put in."""

FEW_ROUNDS = 8
"""Times that both are written out where little is looked for."""

SIGNED = ("relu", "abs", "max", "min")
"""Functions that look at signs."""

FIRST_PLAIN = 1
"""Values of the first's parameters with short sequences, before values are looked for."""

FIRST_SIZES = 2
"""Sizes at which they are."""

Subsumption = Instance | NotAnInstance | Unknown


@dataclass(frozen=True, slots=True)
class Kinds:
    """What is known of two mixers, kind by kind; a kind that another one implies is left out.

    Attributes:
        equal: EQ, equal outputs for equal parameters, or COND, where conditions were asked for.
        forth: SUB, whether the first is a case of the second.
        back: SUB with the two exchanged.
        slots: inputs that the second alone has, and that the first alone has. Where there are some
            SUB is SLOT: they are taken for functions of the last tokens, to be chosen.
        left: what was still to be examined when time was up.
    """

    equal: Verdict
    forth: Subsumption | None
    back: Subsumption | None
    slots: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    left: str = ""


def kinds(
    a: System,
    b: System,
    names: tuple[tuple[str, str], ...] = (),
    conditions: bool = False,
    sizes: Mapping[str, int] = NONE_GIVEN,
    tell: Callable[[Kinds], None] = unheard,
) -> Kinds:
    """Decides whether two mixers are equal, and if not, whether one is a case of the other.

    Args:
        a: one mixer.
        b: the other.
        names: name in b → name in a, see `dsfc.prover.equivalent.equivalent`.
        conditions: whether conditions are looked for too, those that make one a case among them.
        sizes: of some axes, see `dsfc.prover.equivalent.equivalent`.
        tell: takes what is known whenever more is, for whoever ends the search.

    Raises:
        ValueError: the sizes given are none of the two.
    """
    verdict = equivalent(
        a, b, names, conditions, sizes, lambda v, left: tell(Kinds(v, None, None, left=left))
    )
    if isinstance(verdict, Equal | ProvedWhereDefined):
        return Kinds(verdict, None, None)
    cases = "whether one is a case of the other"
    tell(Kinds(verdict, None, None, left=cases))
    begins(cases)
    forth: Subsumption
    if isinstance(verdict, Conditionally) and verdict.certificate.claim.case:
        forth = Instance(verdict.certificate)
    else:
        forth = subsumes(a, b, names, conditions, sizes)
    backwards = tuple(sorted((ours, theirs) for theirs, ours in names))
    own = tuple(
        tuple(slots(Claim(pair[0], pair[1], pair[2], ())))
        for pair in ((a, b, names), (b, a, backwards))
    )
    later = Unknown("time was up before this was examined", (), "more time")
    tell(Kinds(verdict, forth, later, (own[0], own[1]), "whether the second is a case"))
    back = subsumes(b, a, backwards, conditions, sizes)
    return Kinds(verdict, forth, back, (own[0], own[1]))


def subsumes(
    a: System,
    b: System,
    names: tuple[tuple[str, str], ...] = (),
    conditions: bool = False,
    sizes: Mapping[str, int] = NONE_GIVEN,
) -> Subsumption:
    """Decides whether a is a case of b: for all values of a's parameters, some of b's do the same.

    Inputs that b alone has are slots: functions of the last tokens are looked for, or excluded.

    Both answers rest on the kernel alone.

    Args:
        a: the mixer that may be a case.
        b: the mixer whose parameters are looked for.
        names: see `dsfc.prover.equivalent.equivalent`.
        conditions: whether values of b's own parameters are looked for, which may take minutes.
        sizes: of some axes; the question is about these sizes alone.
    """
    try:
        least, twos = (Claim(a, b, names, chosen(a, b, k, sizes)) for k in (1, 2))
    except ValueError as e:
        return Unknown(str(e), (), "sizes that keep what both declare")
    verdict = _no_case(no_case, least)
    if isinstance(verdict, str) and any(t.matrix is not None for t in _terms(a)):
        larger = _no_case(no_case, twos)
        verdict = larger if isinstance(larger, Certificate) else verdict
    if isinstance(verdict, Certificate):
        return NotAnInstance(verdict)
    tried = [f"constant sequences: {verdict}"]
    pinned = examined(a, b, sizes)
    shown: Certificate | str = "none were looked for"
    known, points = WrittenOut(), Tried()
    for later, searches in enumerate(_searches(known)):
        if conditions:
            shown = _cases(twos, pinned, searches)
            if isinstance(shown, Certificate):
                whole, why = where_first_defined(shown)
                if whole is not None:
                    return Instance(whole, why)
                shown = why
        if not later and not slots(least):
            # Functions that fill slots are found sooner than it is seen that there are none.
            first = _no_case(partial(_by_first_points, fixed_sizes=sizes, tried=points), least)
            if isinstance(first, Certificate):
                return NotAnInstance(first)
    if conditions:
        tried.append(f"values of the second's own parameters: {shown}")
    # Functions of more than the token may be a case where those of the token are none.
    # At the declared sizes there are more equations, so these are asked where work was asked for.
    for at in dict.fromkeys(map(_key, (sizes, *(pinned if conditions else ())))):
        asked = partial(no_instance_by_test_sequences, fixed_sizes=dict(at), tried=points)
        apart = _no_case(asked, least)
        if isinstance(apart, Certificate):
            return NotAnInstance(apart)
    tried.append(f"short sequences: {apart}")
    decides = "values of the second's parameters (--conditions), or a reason that there are none"
    return Unknown(str(verdict), tuple(tried), decides)


def _by_first_points(
    claim: Claim, fixed_sizes: Mapping[str, int], tried: Tried
) -> Certificate | str:
    sizes, shapes = FIRST_SIZES, 1
    return no_instance_by_test_sequences(claim, fixed_sizes, FIRST_PLAIN, sizes, shapes, tried)


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


def _key(sizes: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(sizes.items()))


def _cases(
    claim: Claim, pinned: tuple[Mapping[str, int], ...], searches: tuple[Search, ...]
) -> Certificate | str:
    """A certificate that a is a case of b at the declared sizes, or why there is none.

    Where the two declare different numbers, those of both are asked about.

    Args:
        claim: without conditions.
        pinned: see `dsfc.prover.sizes.examined`.
        searches: what is looked for.
    """
    certificates = list[Certificate]()
    for sizes in pinned:
        shown = _case(replace(claim, sizes=modest(claim.a, claim.b, sizes)), searches)
        if isinstance(shown, str):
            return shown if not sizes else f"{shown} ({_listed(sizes)})"
        certificates.append(shown)
    return certificates[0]


def _listed(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name} = {size}" for name, size in sizes.items())


def _case(claim: Claim, searches: tuple[Search, ...]) -> Certificate | str:
    """A certificate that a is a case of b, which the kernel accepted, or why there is none."""
    obstacle: Certificate | str = "none were found"
    for search in searches:
        try:
            for at in islice(search(replace(claim, case=True)), ATTEMPTS):
                with suppress(Rejected, Obstacle, ZeroDivisionError):
                    rows = close(state(alpha_rename(at), False))
                    if isinstance(rows, Differs):
                        continue
                    certificate = Certificate(at, Conditional(Invariant(rows, False), None, ()))
                    check(write(certificate))
                    return certificate
        except Rejected:
            continue
        except (Obstacle, TooLarge, ValueError, ZeroDivisionError) as e:
            obstacle = str(e)
    return obstacle


def _by_matching(claim: Claim, known: WrittenOut) -> Iterator[Claim]:
    """Claims with values that match the states of both."""
    own = own_names(claim)
    told = [t.name for t in claim.b.params if t.name in own]
    for apart in dict.fromkeys(((), *((name,) for name in told), tuple(told))):
        for at in _narrowed(replace(claim, apart=apart)):
            with suppress(Obstacle, TooLarge, ValueError, ZeroDivisionError, Rejected):
                if _is_comparable(alpha_rename(at)):
                    for way in matched(at, known=known):
                        yield replace(way, b=claim.b)


def _as_they_are(claim: Claim, known: WrittenOut) -> Iterator[Claim]:
    """The same where states are those of the first, and names are all shared or none."""
    own = own_names(claim)
    for apart in dict.fromkeys(((), tuple(t.name for t in claim.b.params if t.name in own))):
        for at in _narrowed(replace(claim, apart=apart)):
            with suppress(Obstacle, TooLarge, ValueError, ZeroDivisionError, Rejected):
                if _is_comparable(alpha_rename(at)):
                    for way in matched(at, FEW_ROUNDS, (False,), known):
                        yield replace(way, b=claim.b)


def _narrowed(claim: Claim) -> Iterator[Claim]:
    """The claim, and where b looks at signs, one in which its own parameters are not negative.

    Then a relu of one is the parameter itself. What is found is a value of any parameter.
    """
    yield claim
    names = {p.name for e in expressions((claim.b.definition,)) for x in walk(e)
             if isinstance(x, Prim) and x.name in SIGNED
             for arg in x.args for p in walk(arg) if isinstance(p, Param)}  # fmt: skip
    theirs = {t.name for t in claim.a.params} - set(claim.apart)
    params = tuple(
        replace(t, constraint=Constraint.NONNEG)
        if isinstance(t, Tensor) and t.constraint is Constraint.NONE and t.name in names - theirs
        else t
        for t in claim.b.params
    )
    if params != claim.b.params:
        yield replace(claim, b=replace(claim.b, params=params))


def _by_equations(claim: Claim) -> Iterator[Claim]:
    """Claims with values that solve the equations of the first tokens."""
    for sized in _sized(claim):
        for told in (sized, *_told_apart(sized)):
            renamed = alpha_rename(told)
            if _is_comparable(renamed):
                for conditions in candidates(renamed):
                    yield replace(told, conditions=conditions)


def _is_comparable(claim: Claim) -> bool:
    """Whether a claim says something: values are of no use to another."""
    try:
        comparable(claim)
    except (ValueError, Rejected):
        return False
    return True


def _told_apart(claim: Claim) -> Iterator[Claim]:
    """The claim with parameters of b as its own: real numbers, of which there are equations."""
    own = own_names(claim)
    told = tuple(
        t.name
        for t in claim.b.params
        if isinstance(t, Tensor) and t.field is Field.REAL and t.name in own
    )
    if told:
        yield replace(claim, apart=told)


def _sized(claim: Claim) -> Iterator[Claim]:
    """The claim, and where b has axes of its own, one in which these hold all tokens read."""
    yield claim
    theirs = {d.axis.name for d in claim.a.axes}
    own = [name for name in own_axes(claim) if name not in theirs]
    count = state(claim, False).window + 1
    larger = dict(claim.sizes) | dict.fromkeys(own, count)
    if own and count > max(dict(claim.sizes)[name] for name in own):
        yield replace(claim, sizes=tuple(sorted(larger.items())))


Search = Callable[[Claim], Iterator[Claim]]
"""A search for values, which yields claims with those that may do."""


def _searches(known: WrittenOut) -> tuple[tuple[Search, ...], tuple[Search, ...]]:
    """Searches before short sequences are tried to exclude a case, and after that."""
    few, many = partial(_as_they_are, known=known), partial(_by_matching, known=known)
    return (modal, filters, few, maps_as_named, factored_map), (many, _by_equations)
