"""The atlas of the shipped mixers in the docs: it is of the specs as they are, and true."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from dsfc.api.decide import equivalent
from dsfc.api.locate import shipped_names
from dsfc.api.pipeline import Compilation, load, read
from dsfc.atlas.ir import Atlas, Found, Node, Pair
from dsfc.atlas.page import markdown
from dsfc.atlas.report import json_text
from dsfc.diagnostics.catalogue import NoOutput
from dsfc.diagnostics.report import DiagnosticError
from dsfc.layer_parts import NO_PARTS
from dsfc.mixer.render import render
from dsfc.prover.subsumes import kinds, subsumes
from dsfc.prover.verdict import AtSizes, Conditionally, Instance, NotAnInstance, Proved, Refuted

PAGES = Path(__file__).parents[2] / "docs" / "theory"

SAMPLE = 12
"""Pairs that are decided again."""


@cache
def stored() -> Atlas:
    """The atlas of the docs."""
    it = json.loads((PAGES / "atlas.json").read_text(encoding="utf-8"))
    nodes = (Node(n["name"], n["doc"], n["class"], n["text"]) for n in it["mixers"])
    left_out = tuple((n["name"], n["why"]) for n in it["left_out"])
    return Atlas(tuple(nodes), tuple(map(_pair, it["pairs"])), left_out, it["complete"])


def _pair(p: dict[str, Any]) -> Pair:
    return Pair(p["a"], p["b"], Found(p["verdict"]), p["statement"], tuple(p["conditions"]),
                p["reason"], p["directed"], tuple(p["sizes"].items()))  # fmt: skip


def shipped() -> Iterator[Compilation]:
    for spec in shipped_names():
        text = read(spec)
        yield from map(text.compilation, text.mixers)


@pytest.mark.ci
def test_it_is_of_the_specs_as_they_are() -> None:
    mixers = {c.name: c for c in shipped()}
    of = {n.name: n.text for n in stored().nodes}
    compared = {name: replace(mixers[name].mixer, layer=NO_PARTS) for name in of}
    texts = {n: sha256(render(mixer).encode()).hexdigest() for n, mixer in compared.items()}
    assert of == texts
    for name in mixers.keys() - of.keys() - {name for name, _ in stored().left_out}:
        with pytest.raises(DiagnosticError) as raised:  # a base for others
            assert mixers[name].system
        assert all(isinstance(d, NoOutput) for d in raised.value.diagnostics)


def test_every_two_mixers_are_in_it() -> None:
    atlas = stored()
    named = [n.name for n in atlas.nodes]
    pairs = {frozenset((p.a, p.b)) for p in atlas.pairs}
    assert len(pairs) == len(named) * (len(named) - 1) // 2 and atlas.complete


def test_the_forms_are_of_one_atlas() -> None:
    atlas = stored()
    assert (PAGES / "atlas.json").read_text(encoding="utf-8") == json_text(atlas)
    assert (PAGES / "atlas_tables.md").read_text(encoding="utf-8") == markdown(atlas)
    drawn = (PAGES / "atlas.svg").read_text(encoding="utf-8")
    assert all(f"<!-- {n.name} -->" in drawn or f"{n.name} = " in drawn for n in atlas.nodes)


@pytest.mark.ci
def test_refutations_are_those_of_equiv() -> None:
    refuted = {(p.a, p.b, p.directed) for p in stored().pairs if p.found is Found.REFUTED}
    whole = [(a, b) for a, b, directed in sorted(refuted)
             if not directed and {(a, b, True), (b, a, True)} <= refuted]  # fmt: skip
    assert len(whole) > 3 * SAMPLE
    for a, b in random.Random(1).sample(whole, SAMPLE):
        said = equivalent(load(a), load(b))
        assert isinstance(said.equal, Refuted)
        assert isinstance(said.forth, NotAnInstance) and isinstance(said.back, NotAnInstance)


@pytest.mark.ci
def test_the_shortest_cases_are_those_of_equiv() -> None:
    cases = [p for p in stored().edges if p.directed]
    for p in sorted(cases, key=lambda p: len(p.conditions))[:2]:
        verdict = subsumes(load(p.a).system, load(p.b).system, conditions=True)
        assert isinstance(verdict, Instance)


@pytest.mark.full
def test_proofs_are_those_of_equiv() -> None:
    proved = [p for p in stored().pairs if p.found in (Found.PROVED, Found.AT_SIZES)]
    for p in proved:
        said = kinds(load(p.a).system, load(p.b).system, conditions=True)
        if p.directed:
            assert isinstance(said.forth, Instance)
        elif p.statement == "COND":
            assert isinstance(said.equal, Conditionally)
        elif not p.conditions:
            assert isinstance(said.equal, Proved if p.found is Found.PROVED else AtSizes)
    assert any(p.directed for p in proved)
