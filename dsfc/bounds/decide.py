"""Whether two outputs differ by no more than a bound, on a domain: proved, refuted or unknown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from dsfc.bounds.certificate import check_text, write
from dsfc.bounds.chain import Chain, side_by_side
from dsfc.bounds.domain import Domain
from dsfc.bounds.pair import Pair, Question
from dsfc.bounds.search import search
from dsfc.bounds.witness import Apart, Draws, Observed, observe, refute
from dsfc.expr.build import walk
from dsfc.expr.size import size_value
from dsfc.expr.tree import Size
from dsfc.system.ir import System
from dsfc.trusted.entries import Obstacle
from dsfc.trusted.rejected import Rejected

TOKENS = (1, 3, 12)
"""Lengths of the sequences that are tried, where the domain allows them."""

DRAWN, NEAR = 24, 48
"""Points of each length that are drawn, and those near the worst that are tried."""

SHOWN = 12
"""Points that are run beside a proof, for evidence that the domain is not empty."""


@dataclass(frozen=True, slots=True)
class Within:
    """The outputs differ by no more than a bound; the check accepted the chain.

    Attributes:
        chain: the inequalities.
        observed: what was seen on points of the domain.
    """

    chain: Chain
    observed: Observed


@dataclass(frozen=True, slots=True)
class Undecided:
    """Neither was shown.

    Attributes:
        question: what was asked.
        obstacle: the first thing that stood in the way.
        bound: what was proved, a bound that is too large; None where none was.
        observed: what was seen on points of the domain.
    """

    question: Question
    obstacle: str
    bound: Fraction | None
    observed: Observed


Verdict = Within | Apart | Undecided


def question_of(
    a: System,
    b: System,
    within: Fraction,
    domain: Domain,
    names: tuple[tuple[str, str], ...] = (),
    sizes: Mapping[str, int] | None = None,
) -> Question:
    """Returns a question at the sizes given, those declared as numbers and those that follow."""
    known = dict(sizes or {})
    for system in (a, b):
        for d in system.axes:
            if d.default and d.size is not None and d.axis.name not in known:
                size = size_value(d.size, {})
                if size is not None:
                    known[d.axis.name] = int(size)
    for _ in range(3):  # sizes that are derived from derived ones
        for system in (a, b):
            for d in system.axes:
                read = () if d.size is None else walk(d.size)
                needed = {e.axis.name for e in read if isinstance(e, Size)}
                if d.size is None or d.axis.name in known or not needed <= known.keys():
                    continue
                size = size_value(d.size, known)
                if size is not None and size.denominator == 1 and size >= 1:
                    known[d.axis.name] = int(size)
    return Question(a, b, names, tuple(sorted(known.items())), domain, within)


def decide(question: Question) -> Verdict:
    """Returns a verdict on a question.

    Raises:
        ValueError: the two mixers cannot be put side by side, or the domain is not one of theirs.
    """
    if question.within < 0:
        raise ValueError("a bound is not negative")
    side_by_side(question)
    Pair(question)
    outcome = search(question)
    if isinstance(outcome, Chain) and outcome.bound <= question.within:
        try:
            check_text(write(outcome))
            seen = _look(question, SHOWN, SHOWN, TOKENS[-1:])
            # Points run in double precision show nothing, but none may contradict a proof.
            if seen.worst <= float(outcome.bound) * (1 + ROUNDED) + ROUNDED * max(seen.worst, 1):
                return Within(outcome, seen)
            raise Rejected(f"a point of the domain is {seen.worst:.3g} apart")
        except Rejected as e:
            outcome = f"a chain was found that does not hold: {e}"
    bound = outcome.bound if isinstance(outcome, Chain) else None
    obstacle = "the bound that is proved is larger" if isinstance(outcome, Chain) else outcome
    drawn = _drawn(question)
    if drawn:
        why = (
            f"{drawn} is drawn at random: what holds of all its values says little, and a bound "
            "that holds with a probability is beyond this version"
        )
        return Undecided(question, why, bound, Observed(0, 0.0, None))
    try:
        draws = Draws(question)
    except (ValueError, Obstacle) as e:
        return Undecided(question, f"{obstacle}; no point was run: {e}", bound, _NOTHING)
    seen, points = _NOTHING, 0
    for length in _lengths(question.domain, TOKENS):
        here = observe(draws, length, DRAWN, NEAR)
        points += here.points
        if here.worst > seen.worst or seen.point is None:
            seen = here
        if here.point is not None and here.worst > question.within:
            refuted = refute(draws, here.point)
            if isinstance(refuted, Apart):
                return refuted
            obstacle = f"{obstacle}; a point that looked far apart is none: {refuted}"
    return Undecided(question, obstacle, bound, Observed(points, seen.worst, seen.point))


_NOTHING = Observed(0, 0.0, None)
ROUNDED = 1e-6
"""By how much more than a bound outputs may seem apart that were run in double precision."""


def _look(question: Question, points: int, steps: int, tokens: tuple[int, ...]) -> Observed:
    """The largest difference on some points, if any can be run."""
    try:
        draws = Draws(question)
        return observe(draws, _lengths(question.domain, tokens)[-1], points, steps)
    except (ValueError, Obstacle):
        return _NOTHING


def _lengths(domain: Domain, tokens: tuple[int, ...]) -> tuple[int, ...]:
    longest = domain.longest or max(tokens[-1], domain.shortest)
    return tuple(sorted({min(max(k, domain.shortest), longest) for k in tokens}))


def _drawn(question: Question) -> str:
    """Buffers that are drawn and have no bounds, in words."""
    limited = {x.name for x in question.domain.limits}
    names = dict.fromkeys(
        f"`{t.name}`"
        for s in (question.a, question.b)
        for t in s.buffers
        if t.init is not None and t.init.drawn and t.name not in limited
    )
    return ", ".join(names)
