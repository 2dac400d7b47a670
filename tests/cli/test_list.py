"""`dsfc list`."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

import dsfc
from dsfc.api.locate import shipped_names
from dsfc.diagnostics.report import DiagnosticError


def test_every_shipped_spec_has_a_line(run: Callable) -> None:
    result = run("list")
    assert result.exit_code == 0
    for name in shipped_names():
        assert f"\n  {name} " in f"\n{result.output}", name


def test_lines_say_what_compiles_and_with_what(run: Callable) -> None:
    specs = {s["name"]: s for s in json.loads(run("list", "--format", "json").output)["specs"]}
    assert set(specs) == set(shipped_names())
    assert specs["gla"] == {
        "name": "gla",
        "title": "GLA",
        "kind": "mixer",
        "structure": "per_key",
        "state": "h * n * p",
        "kernels": ["C", "Triton"],
    }
    kinds = {n: specs[n]["kind"] for n in ("qkv", "separable", "gate", "lstm")}
    assert kinds == {"qkv": "base", "separable": "base", "gate": "modifier", "lstm": "described"}
    assert specs["softmax"]["state"] == "all tokens" and specs["softmax"]["kernels"] == []


@pytest.mark.ci
def test_mixers_are_those_that_compile(run: Callable) -> None:
    for s in json.loads(run("list", "--format", "json").output)["specs"]:
        try:
            dsfc.load(s["name"]).module()
        except DiagnosticError:
            assert s["kind"] != "mixer", s
        else:
            assert s["kind"] == "mixer", s
