"""A chain of inequalities as data, and its check: every step follows by its rule from earlier ones.

The check searches for nothing and takes no number at its word. It puts the two mixers side by side,
applies to each step the rule that the step names, with nothing but the earlier steps for premises,
and accepts the step if what comes out is no more than what it says. The last step must be about the
two outputs, and say no more than the bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dsfc.bounds.domain import check_domain
from dsfc.bounds.form import Form, Key
from dsfc.bounds.pair import Bound, Gap, Pair, Question, Subject
from dsfc.bounds.rules import RULES
from dsfc.expr.build import walk
from dsfc.expr.interval import Interval
from dsfc.expr.size import size_value
from dsfc.expr.tree import Now, Ref, Size, Time
from dsfc.system.ir import System
from dsfc.trusted.claim import Claim
from dsfc.trusted.comparable import comparable
from dsfc.trusted.entries import Obstacle
from dsfc.trusted.rejected import Rejected


@dataclass(frozen=True, slots=True)
class Step:
    """One inequality.

    Attributes:
        subject: what is bounded.
        rule: name of the rule.
        bound: the bound.
    """

    subject: Subject
    rule: str
    bound: Bound


@dataclass(frozen=True, slots=True)
class Chain:
    """A proof that two outputs differ by no more than a bound.

    Attributes:
        question: about which mixers, and on which domain.
        steps: premises stand before what follows from them.
        bound: the bound, which may be above what the question asks for.
    """

    question: Question
    steps: tuple[Step, ...]
    bound: Fraction


def check(chain: Chain) -> None:
    """Checks a chain.

    Raises:
        Rejected: a step does not follow, or the steps say nothing of the outputs.
        ValueError: the two mixers cannot be put side by side.
    """
    question = chain.question
    side_by_side(question)
    pair = Pair(question)
    known: dict[Subject, Bound] = {}

    def premise(subject: Subject) -> Bound:
        if subject not in known:
            raise Obstacle("a premise is missing")
        return known[subject]

    for step in chain.steps:
        rule = RULES[type(step.subject)].get(step.rule)
        if rule is None:
            raise Rejected(f"there is no rule {step.rule} of this kind")
        try:
            derived = rule(step.subject, pair, premise)
        except (Obstacle, OverflowError, AssertionError) as e:
            raise Rejected(f"a step does not follow: {e}") from None
        if not covers(step.bound, derived):
            raise Rejected("a step says more than follows")
        known[step.subject] = step.bound
    last = known.get(outputs_gap(question))
    number = last.plain if isinstance(last, Form) else None
    if number is None or number > chain.bound:
        raise Rejected("the steps do not bound how far the outputs are apart")


def covers(said: Bound, derived: Bound) -> bool:
    """Returns whether a bound that is said holds wherever one that was derived does."""
    match said, derived:
        case Interval(), Interval():
            return derived.within(said)
        case Form(), Form():
            allowed = dict(said.terms)
            if not all(_upward(key, c) for key, c in said.terms):
                return False
            return all(c <= allowed.get(key, Fraction(0)) for key, c in derived.terms)
    return False


def _upward(key: Key, c: Fraction) -> bool:
    """Whether a term is one that makes a bound larger."""
    return c > 0 and all(lag.p >= 0 and lag.ratio >= 0 for lag in key.lags)


def outputs_gap(question: Question) -> Gap:
    """Returns what is asked: how far apart the two outputs are."""
    return Gap(_output(question.a), _output(question.b))


def _output(system: System) -> Ref:
    out = system.outputs[0]
    return Ref(out.name, frozenset(out.axes), out.field, Time.STATE, Now(0))


def _check_sizes(question: Question) -> None:
    """Checks that each size stands there once, and that sizes follow from each other.

    Raises:
        ValueError: they are not; the text says why.
    """
    known = dict(question.sizes)
    axes = [d for s in (question.a, question.b) for d in s.axes]
    if len(known) != len(question.sizes):
        raise ValueError("a size stands there twice")
    if any(k < 1 for k in known.values()):
        raise ValueError("a size is not positive")
    for d in axes:
        if d.size is None or d.default or d.axis.name not in known:
            continue
        if not {e.axis.name for e in walk(d.size) if isinstance(e, Size)} <= known.keys():
            continue
        size = size_value(d.size, known)
        if size is not None and size != known[d.axis.name]:
            raise ValueError(f"the size of `{d.axis.name}` is {size} where the others are as asked")


def side_by_side(question: Question) -> None:
    """Checks that the two mixers of a question can be compared, entry by entry of their outputs.

    Raises:
        ValueError: they cannot; the text says why.
    """
    a, b = question.a, question.b
    names = {d.axis.name for s in (a, b) for d in s.axes}
    claim = Claim(a, b, question.names, tuple((name, 1) for name in sorted(names)))
    comparable(claim)
    check_domain(question.domain, question.a, question.b, question.names)
    first, second = (tuple(x.name for x in s.outputs[0].axes) for s in (a, b))
    if first != second:
        raise ValueError(f"the outputs have axes {first} and {second}")
    _check_sizes(question)
