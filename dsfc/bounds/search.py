"""The search for a chain of inequalities: which rule bounds what, and by how much."""

from __future__ import annotations

from fractions import Fraction

from dsfc.bounds.chain import Chain, Step, outputs_gap
from dsfc.bounds.form import Form
from dsfc.bounds.pair import Bound, Gap, Pair, Question, Ratio, Subject
from dsfc.bounds.rules import RULES
from dsfc.expr.interval import Interval
from dsfc.trusted.entries import Obstacle

STEPS = 20_000
"""Subjects of one question, at most."""


def search(question: Question) -> Chain | str:
    """Returns the chain that bounds how far the outputs are apart, or why there is none."""
    pair = Pair(question)
    finder = _Finder(pair)
    try:
        subject = outputs_gap(question)
        bound = finder.get(subject)
    except RecursionError:
        return "the definitions are nested too deeply"
    except Obstacle as e:
        missing = ", ".join(sorted(pair.missing))
        return (
            f"{e}; no size is given of {missing} (--size), which may be why" if missing else str(e)
        )
    assert isinstance(bound, Form)
    number = bound.plain
    if number is None:
        return "the bound depends on the lag"
    return Chain(question, tuple(finder.needed(subject)), number)


class _Finder:
    """A search for bounds: the steps found so far, and why others were not."""

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        self.steps: dict[Subject, Step] = {}
        self.used: dict[Subject, tuple[Subject, ...]] = {}
        self.without: dict[Subject, str] = {}
        self.under: list[Subject] = []
        self.reasons: list[str] = []

    def get(self, subject: Subject) -> Bound:
        """What is known of a subject, found where it is not known yet.

        Raises:
            Obstacle: nothing is.
        """
        if subject in self.steps:
            return self.steps[subject].bound
        if subject in self.without:
            raise Obstacle(self.without[subject])
        if subject in self.under:
            raise Obstacle("a value is bounded by itself")
        if len(self.steps) + len(self.without) > STEPS:
            raise Obstacle("the two are too long to compare")
        self.under.append(subject)
        best: tuple[Bound, str, tuple[Subject, ...]] | None = None
        reason = ""
        for name, rule in RULES[type(subject)].items():
            asked = list[Subject]()

            def premise(other: Subject, asked: list[Subject] = asked) -> Bound:
                out = self.get(other)
                asked.append(other)
                return out

            try:
                bound = rule(subject, self.pair, premise)
            except (Obstacle, OverflowError) as e:
                reason = _better(reason, str(e))
                continue
            if best is None or _tighter(bound, best[0]):
                best = (bound, name, tuple(asked))
            if _enough(subject, bound):
                break
        self.under.pop()
        if best is None:
            self.without[subject] = reason
            raise Obstacle(reason)
        self.steps[subject] = Step(subject, best[1], best[0])
        self.used[subject] = best[2]
        return best[0]

    def needed(self, subject: Subject) -> list[Step]:
        """The steps that a subject rests on, premises before what follows from them."""
        out: dict[Subject, Step] = {}

        def visit(s: Subject) -> None:
            if s not in out:
                for other in self.used[s]:
                    visit(other)
                out[s] = self.steps[s]

        visit(subject)
        return list(out.values())


def _enough(subject: Subject, bound: Bound) -> bool:
    """Whether no other rule needs to be tried."""
    match subject, bound:
        case Gap(open=unknowns), Form():
            return bound.zero or bool(unknowns)
        case Ratio(), Interval():
            return bound.low == bound.high
    return True


def _tighter(bound: Bound, other: Bound) -> bool:
    match bound, other:
        case Form(), Form():
            return _size(bound) < _size(other)
        case Interval(), Interval():
            return bound.high - bound.low < other.high - other.low
    return False


def _size(form: Form) -> Fraction:
    """A number to compare forms by: the smaller, the tighter, where both are numbers."""
    number = form.plain
    return sum((c for _, c in form.terms), Fraction(0)) if number is None else number


def _better(reason: str, other: str) -> str:
    """The reason to print: what is missing, before what does not fit."""
    marks = ("grows without end", "no bound on this domain", "may be 0", "runs backwards")
    for mark in marks:
        if mark in reason:
            return reason
        if mark in other:
            return other
    return other
