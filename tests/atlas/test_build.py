"""What an atlas says of pairs, what it asks again, and what becomes an edge."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from dsfc.api.decide import claims
from dsfc.api.pipeline import read
from dsfc.atlas.build import CONDITIONAL, EQUAL, Charted, Question, build
from dsfc.atlas.ir import Found, Node
from dsfc.atlas.report import as_json, report
from dsfc.atlas.store import NotPrivate, Store
from dsfc.claims.verdict import Unknown
from dsfc.expr.statements import PredicateName
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


@pytest.fixture
def chart(tmp_path: Path) -> Chart:
    """The mixers of a text."""

    def charted(text: str) -> tuple[Charted, ...]:
        file = tmp_path / "family.dsf"
        file.write_text(text, encoding="utf-8")
        spec = read(file)
        out = []
        for name in spec.mixers:
            it = spec.compilation(name)
            node = Node(name, it.mixer.doc or "", it.structure.title)
            out.append(Charted(node, it.system, claims(it, PredicateName.EQUIVALENT)))
        return tuple(out)

    return charted


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
    assert "plain = summed\n" in text and "doubled = plain  where c == 1\n" in text
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
    found = build((scaled, bounded), CONDITIONAL).pairs
    assert found[0].conditions == ("c[d] = 1", "a is in (0, 1)")
    assert "free = bounded  where a is in (0, 1)" in report(build(chart(text)))


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

    found = build(chart(FAMILY), (Question("case of", ask, "SUB", both_ways=True),))
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
        ("plain", "gated", "COND", Found.PROVED),
        ("plain", "gated", "SLOT(constant)", Found.PROVED),
        ("gated", "plain", "SUB", Found.REFUTED),
    ]
    # That they are equal where g = 1/2 says less than that one is a case, and is no second edge.
    (edge,) = found.edges
    assert edge.directed and edge.conditions == ("g[i; d] = 1/2",)
    assert list(found.graph().edges(data="conditions")) == [("plain", "gated", edge.conditions)]
    text = report(found)
    line = "plain ⊆ gated  SLOT(constant)  where g[i; d] = 1/2  for d = 2 alone"
    assert f"proved (1)\n  {line}\n" in text
    assert "refuted for equal parameters: 1 pairs" in text and "other: 1 directed pairs" in text
    written = as_json(found)["pairs"][2]
    assert written["directed"] and written["conditions"] == ["g[i; d] = 1/2"]

    def ask(a: System, b: System) -> dict:
        raise AssertionError((a.name, b.name))

    again = tuple(dataclasses.replace(q, ask=ask) for q in questions)
    assert build(chart(GATED), again, store) == found


def test_what_is_settled_is_not_asked_further(chart: Chart) -> None:
    """Pairs that are equal, or share nothing."""
    counting = Counting()
    more = dataclasses.replace(counting.question, kind="SUB", both_ways=True, otherwise=True)
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
    assert [done for done, _, _ in said] == list(range(6)) and {n for _, n, _ in said} == {6}


def test_a_picture_has_every_mixer(chart: Chart, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from dsfc.atlas.picture import draw

    found = build(chart(FAMILY))
    for form in ("svg", "png"):
        with (tmp_path / f"atlas.{form}").open("wb") as file:
            draw(found, file, form)
    text = (tmp_path / "atlas.svg").read_text(encoding="utf-8")
    for node in found.nodes:
        assert f"<!-- {node.name} -->" in text
    assert "<!-- doubled = plain  where c == 1 -->" in text
    assert (tmp_path / "atlas.png").stat().st_size > 1000
