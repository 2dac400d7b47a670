"""What an atlas says of pairs, what it asks again, and what becomes an edge."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from dsfc.atlas.build import INTERRUPTED, Charted, build
from dsfc.atlas.ir import Family, Found
from dsfc.atlas.questions import CONDITIONAL, EQUAL, LIMIT, Question
from dsfc.atlas.report import as_json, report
from dsfc.atlas.store import NotPrivate, Store
from dsfc.claims.verdict import Unknown
from dsfc.system.ir import System

FAMILY = """
mixer plain { dims d
  input u : d
  state s : d
  s = 1/2 * s[i-1] + u
  y = s
}
mixer summed extends plain { y = 1/3 * s + 2/3 * s }
mixer doubled extends plain {
  param c : d
  y = c * s
  claim equivalent plain when c == 1
}
mixer other { dims d
  input x : d
  y = x
}
"""

Chart = Callable[[str], tuple[Charted, ...]]


class Counting:
    """A question that counts how often it is asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    @property
    def question(self) -> Question:
        def ask(a: System, b: System) -> dict:
            self.asked.append((a.name, b.name))
            return EQUAL.ask(a, b)

        return Question(EQUAL.name, ask)


def test_edges_are_proofs(chart: Chart) -> None:
    found = build(chart(FAMILY))
    assert [(p.a, p.b, p.conditions) for p in found.edges] == [
        ("plain", "summed", ()),
        ("doubled", "plain", ("c == 1",)),
    ]
    assert found.count(Found.REFUTED) == 2
    skipped = [p for p in found.pairs if p.found is Found.SKIPPED]
    assert len(skipped) == 3 and {p.reason for p in skipped} == {"they share no input"}
    graph = found.graph()
    assert graph.number_of_nodes() == 4 and graph.number_of_edges() == 4
    assert graph.get_edge_data("plain", "doubled")[0]["conditions"] == ("c == 1",)


def test_reports(chart: Chart) -> None:
    found = build(chart(FAMILY))
    text = report(found, explain=True)
    assert " equal, for all sizes (1)\n  plain = summed\n" in text
    assert "  doubled = plain  where c == 1\n" in text
    assert "  doubled, plain, summed\n" in text
    assert "refuted for equal parameters: 2 pairs" in text
    assert "not comparable: 3 pairs\n    3 they share no input\n        plain, other\n" in text
    document = json.loads(json.dumps(as_json(found)))
    assert len(document["pairs"]) == 7 and document == as_json(build(chart(FAMILY)))


SIZED = """
mixer powers { dims heads h = 4, n
  input u : h × n
  state s : h × n
  s = (1 - 2^(-5 - iota[h])) * s[i-1] + u
  y = s
}
mixer again extends powers {
  s = (1 - 1 / 2^(iota[h] + 5)) * s[i-1] + u
  claim equivalent powers
}
"""


@pytest.mark.ci
def test_what_is_equal_at_some_sizes_is_no_edge(chart: Chart) -> None:
    mixers = chart(SIZED)
    ((claim,),) = (m.claims for m in mixers if m.claims)
    assert isinstance(claim.verdict, Unknown)
    assert "are shown for all n, for h = 4 alone" in claim.verdict.obstacle
    found = build(mixers)
    assert found.edges == () and found.count(Found.AT_SIZES) == 1
    assert found.graph().number_of_edges() == 0
    text = report(found)
    assert "open at others (1)\n  powers = again  for h = 4 alone\n" in text
    assert as_json(found)["pairs"][0]["sizes"] == {"h": 4}


@pytest.mark.ci
def test_ranges_that_one_mixer_alone_promises_are_conditions(chart: Chart) -> None:
    text = """
mixer free { dims d
  input u : d
  param a : d
  state s : d
  s = a * s[i-1] + u
  y = s
}
mixer bounded { dims d
  input u : d
  param a : d unit
  state s : d
  s = a * s[i-1] + u
  y = s
}
mixer scaled extends free {
  param c : d
  s = a * s[i-1] + c * u
  claim equivalent bounded when c == 1
}
"""
    edge, claimed = build(chart(text)).edges
    assert edge.conditions == ("a is in (0, 1)",)
    assert claimed.conditions == ("c == 1", "a is in (0, 1)")
    _, bounded, scaled = chart(text)
    (found,) = [p for p in build((scaled, bounded), CONDITIONAL).pairs if p.statement == "COND"]
    assert found.conditions == ("c[d] = 1", "a is in (0, 1)")
    assert "free = bounded  where a is in (0, 1)" in report(build(chart(text)))


@pytest.mark.ci
def test_parameters_of_one_name_may_have_other_values_in_a_case(chart: Chart) -> None:
    text = """
mixer scaled { dims d
  input u : d
  param a : d
  y = a * u
}
mixer squared extends scaled { y = a^2 * u }
"""
    found = build(chart(text), (EQUAL, *CONDITIONAL))
    edges = [(p.a, p.b, p.conditions) for p in found.edges if p.directed]
    assert ("squared", "scaled", ("a_[d] = a[d]^2",)) in edges


def test_other_statements_become_edges_as_they_come(chart: Chart) -> None:
    """A question of another kind, asked both ways, with conditions and a direction."""

    def ask(a: System, b: System) -> dict:
        if (a.name, b.name) != ("summed", "plain"):
            return {"verdict": "unknown", "statement": "SUB", "obstacle": "not tried"}
        return {"verdict": "proved", "statement": "SUB", "conditions": ["d == 1"], "directed": True}

    found = build(chart(FAMILY), (Question("case of", ask, "SUB", True),))
    edges = [(p.a, p.b, p.statement, p.conditions, p.directed) for p in found.edges]
    assert edges[0] == ("summed", "plain", "SUB", ("d == 1",), True)
    assert found.graph().has_edge("summed", "plain")
    assert "summed ⊆ plain  where d == 1" in report(found)
    assert len(found.pairs) == 2 * 6 + 1


GATED = """
mixer plain { dims d
  input u : d
  state s : d
  s = 1/2 * s[i-1] + u
  y = s
}
mixer gated { dims d
  input u, g : d
  state s : d
  s = g * s[i-1] + u
  y = s
}
"""


def test_cases_are_directed_edges_with_what_makes_them_cases(chart: Chart, tmp_path: Path) -> None:
    store, questions = Store(tmp_path / "kept"), (EQUAL, *CONDITIONAL)
    found = build(chart(GATED), questions, store)
    asked = [(p.a, p.b, p.statement, p.found) for p in found.pairs]
    assert asked == [
        ("plain", "gated", "EQ", Found.REFUTED),
        ("plain", "gated", "SLOT(constant)", Found.PROVED),
        ("gated", "plain", "SUB", Found.REFUTED),
        ("plain", "gated", "COND", Found.PROVED),
    ]
    # That they are equal where g = 1/2 says less than that one is a case, and is no second edge.
    (edge,) = found.edges
    assert edge.directed and edge.conditions == ("g[i; d] = 1/2",)
    assert list(found.graph().edges(data="conditions")) == [("plain", "gated", edge.conditions)]
    text = report(found)
    line = "plain ⊆ gated  SLOT(constant)  where g[i; d] = 1/2  for d = 2 alone"
    assert f"proved (1)\n a case of the other (1)\n  {line}\n" in text
    assert "refuted for equal parameters: 1 pairs" in text and "other: 1 directed pairs" in text
    written = as_json(found)["pairs"][1]
    assert written["directed"] and written["conditions"] == ["g[i; d] = 1/2"]

    def ask(a: System, b: System) -> dict:
        raise AssertionError((a.name, b.name))

    again = tuple(dataclasses.replace(q, ask=ask) for q in questions)
    assert build(chart(GATED), again, store) == found


def test_what_is_settled_is_not_asked_further(chart: Chart) -> None:
    """Pairs that are equal, or share nothing."""
    counting = Counting()
    more = dataclasses.replace(counting.question, about="SUB", both_ways=True, otherwise=True)
    build(chart(FAMILY), (EQUAL, more))
    assert counting.asked == [("plain", "doubled"), ("doubled", "plain"), ("summed", "doubled"),
                              ("doubled", "summed")]  # fmt: skip


def test_a_second_run_asks_only_what_changed(chart: Chart, tmp_path: Path) -> None:
    first, second, third = Counting(), Counting(), Counting()
    store = Store(tmp_path / "kept")
    before = build(chart(FAMILY), (first.question,), store)
    assert len(first.asked) == 3
    again = build(chart(f"# a comment\n{FAMILY}"), (second.question,), Store(tmp_path / "kept"))
    assert second.asked == [] and again == before
    changed = FAMILY.replace("1/3 * s + 2/3 * s", "1/3 * s + 1/3 * s")
    build(chart(changed), (third.question,), store)
    assert third.asked == [("plain", "summed"), ("summed", "doubled")]


@pytest.mark.ci
def test_a_spoiled_answer_is_none(chart: Chart, tmp_path: Path) -> None:
    store = Store(tmp_path / "kept")
    build(chart(FAMILY), store=store)
    files = sorted((tmp_path / "kept").glob("*.json"))
    kept = [file.read_text(encoding="utf-8") for file in files]
    for texts in (
        ("", "[]", '{"verdict": 3}'),
        ('{"verdict": "proud"}', '{"answer": {}, "sha256": 1}', "[" * 100_000),
        tuple(text.replace("proved", "proud").replace("refuted", "proved") for text in kept),
        (kept[1], kept[2], kept[0]),
    ):
        for file, text in zip(files, texts, strict=True):
            file.write_text(text, encoding="utf-8")
        counting = Counting()
        build(chart(FAMILY), (counting.question,), store)
        assert len(counting.asked) == 3


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="folders have no owners here")
def test_a_folder_that_others_may_write_to_is_not_used(tmp_path: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(NotPrivate, match="by others"):
        Store(folder)


def test_progress_counts_pairs(chart: Chart) -> None:
    said: list[tuple[int, int, str]] = []
    build(chart(FAMILY), progress=lambda *what: said.append(what))
    assert said == [(done, 3, EQUAL.name) for done in range(4)]


class Bounded:
    """A question about cases that finds something, and then searches without an end."""

    @staticmethod
    def first(a: System, b: System) -> dict:
        return {"verdict": "refuted", "statement": "SLOT(token)", "reason": "a few sequences",
                "directed": True, "open": True}  # fmt: skip

    @staticmethod
    def endless(a: System, b: System) -> dict:
        while True:
            pass

    questions = (Question("fast", first, "SUB"), Question("slow", endless, "SUB"))


def test_a_limit_ends_a_pair_and_keeps_what_was_found(chart: Chart) -> None:
    two = chart(GATED)
    (pair,) = build(two, Bounded.questions, seconds=1.0).pairs
    assert (pair.found, pair.statement) == (Found.REFUTED, "SLOT(token)")
    (pair,) = build(two, Bounded.questions[1:], seconds=1.0).pairs
    assert (pair.found, pair.reason) == (Found.UNKNOWN, LIMIT)


def test_what_had_too_little_time_is_asked_again_with_more(chart: Chart, tmp_path: Path) -> None:
    store, two = Store(tmp_path / "kept"), chart(GATED)
    build(two, Bounded.questions[1:], store, seconds=1.0)

    def ask(a: System, b: System) -> dict:
        asked.append(a.name)
        return {"verdict": "proved", "statement": "SUB", "directed": True}

    asked: list[str] = []
    again = (dataclasses.replace(Bounded.questions[1], ask=ask),)
    assert build(two, again, store, seconds=1.0).pairs[0].reason == LIMIT and not asked
    assert build(two, again, store, seconds=2.0).pairs[0].found is Found.PROVED
    assert build(two, again, store, seconds=0.5).pairs[0].found is Found.PROVED
    assert asked == ["plain"]


def test_mixers_of_one_class_have_ten_times_the_seconds(chart: Chart, tmp_path: Path) -> None:
    third = "mixer third extends plain { y = 2 * s }\n"
    build(chart(GATED + third), Bounded.questions[1:], Store(tmp_path / "kept"), seconds=0.3)
    kept = [json.loads(file.read_text()) for file in (tmp_path / "kept").glob("*.json")]
    limits = sorted(answer["answer"]["limit"] for answer in kept)
    assert limits == pytest.approx([0.03, 0.03, 0.3])


def test_an_answer_that_is_open_is_asked_further_and_no_other(chart: Chart) -> None:
    def final(a: System, b: System) -> dict:
        return {"verdict": "refuted", "statement": "SUB", "directed": True}

    def better(a: System, b: System) -> dict:
        return {"verdict": "proved", "statement": "SLOT(window 1)", "directed": True}

    fast, slow = Bounded.questions
    further = dataclasses.replace(slow, ask=better)
    (pair,) = build(chart(GATED), (fast, further)).pairs
    assert pair.statement == "SLOT(window 1)"
    (pair,) = build(chart(GATED), (dataclasses.replace(fast, ask=final), further)).pairs
    assert pair.found is Found.REFUTED


def test_an_interrupted_run_has_what_was_found(chart: Chart, tmp_path: Path) -> None:
    asked: list[str] = []

    def ask(a: System, b: System) -> dict:
        if asked:
            raise KeyboardInterrupt
        asked.append(a.name)
        return EQUAL.ask(a, b)

    store = Store(tmp_path / "kept")
    found = build(chart(FAMILY), (dataclasses.replace(EQUAL, ask=ask),), store)
    assert not found.complete and "was interrupted" in report(found)
    left = [p for p in found.pairs if p.reason == INTERRUPTED]
    assert len(found.pairs) == 7 and len(left) == 2 and found.count(Found.UNKNOWN) == 2
    counting = Counting()
    assert build(chart(FAMILY), (counting.question,), store).complete
    assert len(counting.asked) == 2


@pytest.mark.ci
def test_families_are_by_verdict_and_size(chart: Chart) -> None:
    of = {(p.a, p.b, p.statement): p.family for p in build(chart(FAMILY)).pairs}
    assert of["plain", "summed", "EQ"] is Family.EQUAL
    assert of["plain", "doubled", "EQ"] is Family.DIFFERENT
    assert of["doubled", "plain", "EQ"] is Family.CONDITIONAL
    assert of["plain", "other", "EQ"] is Family.SKIPPED
    ((sized,),) = (build(chart(SIZED)).pairs,)
    assert sized.family is Family.AT_SIZES
    cases = {p.family for p in build(chart(GATED), CONDITIONAL).pairs if p.directed}
    assert cases == {Family.CASE, Family.NO_CASE}
