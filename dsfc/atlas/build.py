"""Asking about every pair of mixers: the one public function of the package."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from dsfc.atlas.ir import Atlas, Found, Node, Pair
from dsfc.atlas.questions import EQUAL, Answer, Document, Question, incomparable, undecided
from dsfc.atlas.store import Store, fingerprint
from dsfc.atlas.workers import Job, Run, workers
from dsfc.claims.verdict import Decided, Proved
from dsfc.expr.statements import Predicate, PredicateName
from dsfc.prover.report import range_conditions
from dsfc.system.ir import System
from dsfc.trusted.claim import Claim

SECONDS = 4.0
"""Processor time for one pair where nothing else is said, in seconds."""

UNLIKE = 0.1
"""The part of it that mixers of different structure classes have, which are rarely related."""

LEAST = 0.02
"""Seconds that are too few to ask anything."""

INTERRUPTED = "not asked: the run was interrupted"


@dataclass(frozen=True, slots=True)
class Charted:
    """A mixer to chart.

    Attributes:
        node: what it is called.
        system: its derived system.
        claims: what it claims of others, decided; proofs among them are edges.
    """

    node: Node
    system: System
    claims: tuple[Decided, ...] = ()


Progress = Callable[[int, int, str], None]
"""Called with how many pairs are done, how many there are, and what is asked of them."""

_Key = tuple[str, int, int]
"""A statement about two mixers, by position."""


def build(
    mixers: tuple[Charted, ...],
    questions: tuple[Question, ...] = (EQUAL,),
    store: Store | None = None,
    progress: Progress | None = None,
    left_out: tuple[tuple[str, str], ...] = (),
    seconds: float = SECONDS,
    processes: int = 1,
) -> Atlas:
    """Returns what is known of every pair of some mixers.

    Each question is asked of all pairs before the next one, in their order, and pairs of one
    structure class come first. Interrupted by Ctrl-C, it returns what is known by then.

    Args:
        mixers: in the order they are listed.
        questions: what is asked of each pair.
        store: where answers are kept; None keeps none.
        progress: called after each answer.
        left_out: mixers that have no system, with the reason.
        seconds: of processor time for one pair of a structure class, or of quotients over it;
            other pairs have a tenth. The questions about a pair share them.
        processes: how many processes work at once.
    """
    chart = _Chart(mixers, questions, store, seconds)
    complete = False
    with suppress(KeyboardInterrupt):
        systems = [m.system for m in mixers]
        with workers(systems, questions, processes) as run:
            for number in range(len(questions)):
                chart.ask(number, run, progress)
        complete = True
    pairs = list(chart.pairs(complete))
    known = {m.node.name: m.system for m in mixers}
    for m in mixers:
        pairs += _claimed(m, known)
    return Atlas(tuple(m.node for m in mixers), tuple(pairs), left_out, complete)


@dataclass(slots=True)
class _Chart:
    """An atlas in the making: the answers so far.

    Attributes:
        skipped: why two mixers cannot be put side by side, by their positions.
        answers: the answers, by statement.
        spent: seconds that went into a pair.
        settled: pairs of which no further question is asked.
    """

    mixers: tuple[Charted, ...]
    questions: tuple[Question, ...]
    store: Store | None
    seconds: float
    skipped: dict[tuple[int, int], str] = field(default_factory=dict)
    answers: dict[_Key, Document] = field(default_factory=dict)
    spent: dict[tuple[int, int], float] = field(default_factory=dict)
    settled: set[tuple[int, int]] = field(default_factory=set)
    prints: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.prints = tuple(fingerprint(m.system) for m in self.mixers)
        for a, b in combinations(range(len(self.mixers)), 2):
            why = incomparable(self.mixers[a].system, self.mixers[b].system)
            if why is not None:
                self.skipped[a, b] = why

    def ask(self, number: int, run: Run, progress: Progress | None) -> None:
        """Asks one question of all pairs that it is asked of."""
        question = self.questions[number]
        total = asked = 0
        jobs = []
        shares = {pair: self._share(number, pair) for pair in self._pairs()}
        for (a, b), seconds in shares.items():
            for job in self._jobs(number, a, b, seconds):
                total += 1
                kept = self._kept(job)
                if kept is None and seconds >= LEAST:
                    jobs.append(job)
                else:
                    asked += 1
                    self._note(job, kept or Answer(undecided(question), 0.0))
        if progress is not None:
            progress(asked, total, question.name)
        for job, answer in run(sorted(jobs, key=lambda job: self._unlike(job.a, job.b))):
            self._keep(job, answer)
            self._note(job, answer)
            asked += 1
            if progress is not None:
                progress(asked, total, question.name)

    def pairs(self, complete: bool) -> Iterator[Pair]:
        """Yields what is known of each pair, statement by statement.

        Args:
            complete: whether all was asked.
        """
        about = dict.fromkeys((q.about, q.both_ways, q.otherwise) for q in self.questions)
        names = [m.node.name for m in self.mixers]
        for a, b in combinations(range(len(names)), 2):
            for statement, both_ways, otherwise in about:
                ways = ((a, b), (b, a)) if both_ways else ((a, b),)
                for first, second in ways:
                    two = names[first], names[second]
                    if (a, b) in self.skipped:
                        if not otherwise:
                            why = self.skipped[a, b]
                            yield Pair(*two, Found.SKIPPED, statement, reason=why)
                        continue
                    answer = self.answers.get((statement, first, second))
                    if answer is not None:
                        yield _pair(two, answer)
                    elif not complete and not (otherwise and (a, b) in self.settled):
                        yield Pair(*two, Found.UNKNOWN, statement, reason=INTERRUPTED)

    def _pairs(self) -> Iterator[tuple[int, int]]:
        for pair in combinations(range(len(self.mixers)), 2):
            if pair not in self.skipped:
                yield pair

    def _jobs(self, number: int, a: int, b: int, seconds: float) -> Iterator[Job]:
        """The questions about a pair that are still open."""
        question = self.questions[number]
        if question.otherwise and (a, b) in self.settled:
            return
        for first, second in ((a, b), (b, a))[: 1 + question.both_ways]:
            if _open(self.answers.get((question.about, first, second))):
                yield Job(number, first, second, seconds)

    def _share(self, number: int, pair: tuple[int, int]) -> float:
        """The seconds for a question about a pair: a part of those left, as others follow."""
        weights = [q.weight * (1 + q.both_ways) for q in self.questions[number:]]
        seconds = self.seconds * (UNLIKE if self._unlike(*pair) > 1 else 1.0)
        left = seconds - self.spent.get(pair, 0.0)
        return max(left, 0.0) * self.questions[number].weight / sum(weights)

    def _unlike(self, *pair: int) -> int:
        """How unlike two mixers are: 0 for one structure class, 1 for one of quotients of it."""
        a, b = (self.mixers[k].node.kind for k in pair)
        return 0 if a == b else 1 if a.split()[-1] == b.split()[-1] else 2

    def _note(self, job: Job, answer: Answer) -> None:
        question, pair = self.questions[job.question], (min(job.a, job.b), max(job.a, job.b))
        self.spent[pair] = self.spent.get(pair, 0.0) + answer.seconds
        key = question.about, job.a, job.b
        before = self.answers.get(key)
        if before is None or not _nothing(answer.document):
            self.answers[key] = answer.document
        elif _nothing(before):
            self.answers[key] = answer.document
        if not question.otherwise and answer.document["verdict"] == Found.PROVED:
            self.settled.add(pair)

    def _kept(self, job: Job) -> Answer | None:
        """A kept answer, unless it had less time than there is now."""
        if self.store is None:
            return None
        kept = self.store.get(self._key(self.store, job))
        if kept is None:
            return None
        answer = Answer(kept["document"], kept["seconds"], kept["limit"])
        return None if answer.limit is not None and job.seconds > answer.limit else answer

    def _keep(self, job: Job, answer: Answer) -> None:
        if self.store is not None:
            kept = {"document": answer.document, "seconds": answer.seconds, "limit": answer.limit}
            self.store.put(self._key(self.store, job), kept)

    def _key(self, store: Store, job: Job) -> str:
        name = self.questions[job.question].name
        return store.key(name, self.prints[job.a], self.prints[job.b])


def _nothing(answer: Document) -> bool:
    return bool(answer["verdict"] == Found.UNKNOWN)


def _open(answer: Document | None) -> bool:
    """Whether a further question about the same statement may find more."""
    return answer is None or _nothing(answer) or bool(answer.get("open", False))


def _pair(names: Sequence[str], answer: Document) -> Pair:
    return Pair(
        names[0],
        names[1],
        Found(answer["verdict"]),
        str(answer.get("statement", "")),
        tuple(str(c) for c in answer.get("conditions", ())),
        _reason(answer),
        bool(answer.get("directed", False)),
        tuple(_fixed(answer).items()) if str(answer["verdict"]).startswith("proved") else (),
    )


def _fixed(answer: Document) -> dict[str, int]:
    """The axes that an answer speaks of at one size alone, with this size."""
    every = answer.get("every", ())
    return {n: k for n, k in answer.get("sizes", {}).items() if n not in every}


def _reason(answer: Document) -> str:
    match answer["verdict"]:
        case "proved" | "proved at sizes":
            every, fixed = answer.get("every", ()), _fixed(answer)
            parts = [f"all {', '.join(every)}"] * bool(every) + [_sizes(fixed)] * bool(fixed)
            return ", ".join((f"{answer.get('rows', 0)} rows", *parts))
        case "refuted" if "reason" in answer:
            return str(answer["reason"])
        case "refuted":
            return f"a point of {answer.get('length', 0)} tokens, {_sizes(answer.get('sizes', {}))}"
    return str(answer.get("obstacle", ""))


def _sizes(sizes: dict[str, Any]) -> str:
    return ", ".join(f"{name} = {size}" for name, size in sizes.items())


def _claimed(m: Charted, known: Mapping[str, System]) -> Iterator[Pair]:
    """What a mixer claims of another, where that is proved under conditions."""
    for claim in m.claims:
        what = claim.statement.what
        if not isinstance(what, Predicate) or what.word is not PredicateName.EQUIVALENT:
            continue
        other = what.about or ""
        if other in known and other != m.node.name and isinstance(claim.verdict, Proved):
            conditions = tuple(c.text() for c in claim.statement.when)
            conditions += tuple(range_conditions(Claim(m.system, known[other], (), ())))
            yield Pair(m.node.name, other, Found.PROVED, "EQ", conditions, claim.verdict.by)
