"""Who answers the questions of an atlas: this process, or one process for each core.

A process that does not keep to its seconds is ended and replaced, so nothing can hold a run up.
"""

from __future__ import annotations

import json
import signal
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING

from dsfc.atlas.questions import Answer, Question, answered, undecided
from dsfc.expr.json import decode, encode
from dsfc.limits import PATIENCE
from dsfc.system.ir import System

if TYPE_CHECKING:
    from multiprocessing.context import SpawnProcess

GRACE = 20.0
"""Seconds by the clock that a process may be late, for what starts and for a busy machine."""

ENDED = "the process that worked on it has ended"
"""Why a question has no answer whose process was ended by others, as for lack of memory."""


@dataclass(frozen=True, slots=True)
class Job:
    """A question about two mixers, by position.

    Attributes:
        question: which question.
        a: which mixer is the first.
        b: which one is the second.
        seconds: of processor time that the answer may take.
    """

    question: int
    a: int
    b: int
    seconds: float


Run = Callable[[Sequence[Job]], Iterator[tuple[Job, Answer]]]
"""Answers jobs, in the order in which they are done."""


@contextmanager
def workers(
    systems: Sequence[System], questions: Sequence[Question], processes: int
) -> Iterator[Run]:
    """Gives who answers questions about some systems.

    Args:
        systems: what jobs are about.
        questions: what may be asked; with more than one process these are sent to others, so
            what they call is a function of a module.
        processes: how many work at once; one is this process.
    """
    if processes <= 1:
        yield lambda jobs: _here(jobs, systems, questions)
        return
    pool = _Pool(systems, questions, processes)
    try:
        yield pool.run
    finally:
        pool.close()


def _here(
    jobs: Sequence[Job], systems: Sequence[System], questions: Sequence[Question]
) -> Iterator[tuple[Job, Answer]]:
    for job in jobs:
        yield job, _answer(job, systems, questions)


def _answer(job: Job, systems: Sequence[System], questions: Sequence[Question]) -> Answer:
    return answered(questions[job.question], systems[job.a], systems[job.b], job.seconds)


@dataclass(slots=True)
class _Worker:
    """A process, and what it is at.

    Attributes:
        process: the process.
        line: jobs go there, answers come from there.
        job: what it is asked, None while it waits.
        late: when it is ended, by the clock.
    """

    process: SpawnProcess
    line: Connection
    job: Job | None = None
    late: float = 0.0


class _Pool:
    """Processes that are alike."""

    def __init__(
        self, systems: Sequence[System], questions: Sequence[Question], processes: int
    ) -> None:
        # Expressions are one object where they are equal, which the reader of documents keeps.
        self._texts = tuple(json.dumps(encode(system)) for system in systems)
        self._questions = tuple(questions)
        self._workers = [self._started() for _ in range(processes)]

    def run(self, jobs: Sequence[Job]) -> Iterator[tuple[Job, Answer]]:
        """Yields the answers as they come."""
        left = deque(jobs)
        while left or any(w.job for w in self._workers):
            for worker in self._workers:
                if worker.job is None and left:
                    job = left.popleft()
                    worker.job, worker.late = job, time.monotonic() + PATIENCE * job.seconds + GRACE
                    with suppress(OSError):  # of one that has ended, which is seen below
                        worker.line.send(job)
            wait([w.line for w in self._workers], timeout=1.0)
            for k, worker in enumerate(self._workers):
                if worker.job is None:
                    continue
                answer = self._from(worker)
                if answer is not None:
                    done = worker.job
                    if worker.line.closed:
                        self._workers[k] = self._started()
                    worker.job = None
                    yield done, answer

    def close(self) -> None:
        """Ends all processes."""
        for worker in self._workers:
            _end(worker)

    def _from(self, worker: _Worker) -> Answer | None:
        """The answer of a process; "unknown" if it has ended, or is ended because it is late."""
        assert worker.job is not None
        question = self._questions[worker.job.question]
        try:
            if worker.line.poll():
                answer: Answer | str = worker.line.recv()
                if isinstance(answer, str):
                    raise RuntimeError(answer)
                return answer
        except (EOFError, OSError):
            _end(worker)
            return Answer(undecided(question, ENDED), 0.0, 0.0)
        if time.monotonic() < worker.late:
            return None
        _end(worker)
        return Answer(undecided(question), worker.job.seconds, worker.job.seconds)

    def _started(self) -> _Worker:
        context = get_context("spawn")
        ours, theirs = context.Pipe()
        arguments = theirs, self._texts, self._questions
        process = context.Process(target=serve, args=arguments, daemon=True)
        process.start()
        theirs.close()
        return _Worker(process, ours)


def _end(worker: _Worker) -> None:
    worker.process.kill()
    worker.process.join()
    worker.line.close()


def serve(line: Connection, texts: Sequence[str], questions: Sequence[Question]) -> None:
    """Answers jobs that come along a line, until it is closed.

    Args:
        line: jobs come from there, answers go there; a text says what went wrong.
        texts: systems as JSON.
        questions: what may be asked.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started the process ends it
    systems = [decode(json.loads(text), System) for text in texts]
    while True:
        try:
            job = line.recv()
        except EOFError:
            return
        try:
            line.send(_answer(job, systems, questions))
        except Exception as e:  # said by the process that asked
            line.send(f"{type(e).__name__}: {e}")
            return
