"""`dsfc list`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

import dsfc
from dsfc.api import shipped
from dsfc.api.locate import block_names, spec_names
from dsfc.api.shipped import Kind, Shipped, shipped_papers
from dsfc.diagnostics.report import DiagnosticError


@pytest.mark.full
def test_every_shipped_spec_has_a_line(run: Callable) -> None:
    result = run("list")
    assert result.exit_code == 0
    for name in spec_names():
        line = re.search(rf"^  {name} .*$", result.output, re.MULTILINE)
        assert line is not None and shipped_papers(name)[0].short in line[0]


@pytest.mark.ci
def test_lines_say_what_compiles_and_with_what(run: Callable) -> None:
    specs = {s["name"]: s for s in json.loads(run("list", "--format", "json").output)["specs"]}
    assert set(specs) == set(spec_names())
    papers = specs["gla"]["papers"]
    assert papers[0] == {
        "authors": ["Yang", "Wang", "Shen", "Panda", "Kim"],
        "others": False,
        "year": 2023,
        "title": "Gated Linear Attention Transformers with Hardware-Efficient Training",
        "identifier": {"register": "arXiv", "value": "2312.06635"},
        "place": None,
        "letters": [],
    }
    assert specs["gla"] == {
        "name": "gla",
        "title": "Gated linear attention (GLA)",
        "kind": "mixer",
        "structure": "per_key",
        "state": "h * n * p",
        "papers": papers,
        "kernels": ["C", "Triton"],
    }
    kinds = {n: specs[n]["kind"] for n in ("qkv", "separable", "gate", "lstm")}
    assert kinds == {"qkv": "base", "separable": "base", "gate": "modifier", "lstm": "described"}
    assert {n for n in specs if specs[n]["kind"] == "block"} == set(block_names())
    assert specs["softmax"]["state"] == "all tokens" and specs["softmax"]["kernels"] == []


@pytest.mark.full
def test_mixers_and_blocks_are_those_that_compile(run: Callable) -> None:
    for s in json.loads(run("list", "--format", "json").output)["specs"]:
        try:
            dsfc.load(s["name"]).module()
        except DiagnosticError:
            assert s["kind"] not in ("mixer", "block"), s
        else:
            assert s["kind"] in ("mixer", "block"), s


def test_each_spec_has_a_bound_of_its_own(run: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow machine lists them all, since none of them takes long."""
    began: list[str] = []

    @contextmanager
    def noted(what: str) -> Iterator[None]:
        began.append(what)
        yield

    papers = shipped_papers("s6")
    monkeypatch.setattr("dsfc.cli.list.bounded", noted)
    monkeypatch.setattr(shipped, "shipped_line", lambda n: Shipped(n, n, Kind.MIXER, papers=papers))
    assert run("list").exit_code == 0
    assert began == [f"list {name}" for name in spec_names()]
