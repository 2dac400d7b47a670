"""Several processes that answer the questions of an atlas."""

from __future__ import annotations

import operator
from collections.abc import Callable
from itertools import permutations
from multiprocessing import active_children

import pytest

from dsfc.atlas.build import build
from dsfc.atlas.questions import CONDITIONAL, EQUAL, Question, answered
from dsfc.atlas.workers import ENDED, Job, workers

FAMILY = """
mixer plain { dims d
  input u : d
  state s : d
  s = 1/2 * s[i-1] + u
  y = s
}
mixer doubled extends plain {
  param c : d
  y = c * s
}
mixer summed extends plain { y = 1/3 * s + 2/3 * s }
"""


@pytest.mark.ci
def test_two_processes_find_what_one_finds(chart: Callable) -> None:
    mixers, questions = chart(FAMILY), (EQUAL, *CONDITIONAL)
    assert build(mixers, questions, processes=2) == build(mixers, questions)


@pytest.mark.ci
def test_a_process_that_dies_costs_one_answer(chart: Callable) -> None:
    systems = [m.system for m in chart(FAMILY)]
    jobs = [Job(0, a, b, 10.0) for a, b in 4 * list(permutations(range(3), 2))]
    answers = []
    with workers(systems, (EQUAL,), 2) as run:
        for job, answer in run(jobs):
            answers.append((job, answer))
            if len(answers) == 3:
                active_children()[0].kill()
    assert sorted(map(repr, jobs)) == sorted(repr(job) for job, _ in answers)
    lost = [answer for _, answer in answers if answer.document.get("obstacle") == ENDED]
    assert len(lost) <= 1 and all(answer.limit == 0 for answer in lost)
    assert sum(answer.limit is None for _, answer in answers) == len(jobs) - len(lost)
    assert not active_children()


@pytest.mark.ci
def test_a_mistake_in_a_process_is_said(chart: Callable) -> None:
    systems = [m.system for m in chart(FAMILY)]
    broken = Question("broken", operator.truediv)
    with workers(systems, (broken,), 2) as run, pytest.raises(RuntimeError, match=r"^TypeError: "):
        list(run([Job(0, 0, 1, 5.0)]))


def test_an_answer_says_what_it_cost(chart: Callable) -> None:
    a, b, _ = (m.system for m in chart(FAMILY))
    answer = answered(EQUAL, a, b, 10.0)
    assert answer.limit is None and 0 < answer.seconds < 10
