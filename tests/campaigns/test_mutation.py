"""The tool that changes passes: changes are what they say, and the survivors found are known."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import signal
import types

import pytest
from changes import NOTE, Changed, Mutant, change, modules, mutants
from mutation import FIGURES, KEPT, PARTS, Experience, _forget, _forked, drawn, score

TEXT = '''
def f(x, y=1):
    """Text of 1."""
    if not x and y > 2:
        g(x)
    return x + 3 if y else -x
'''


def changed(mutant: Mutant) -> str:
    tree = ast.parse(TEXT)
    numbers = {node: k for k, node in enumerate(ast.walk(tree))}
    return ast.unparse(Changed(numbers, mutant).visit(tree))


def test_each_mutant_changes_one_place() -> None:
    found = {m.text: changed(m) for m in mutants("m", ast.parse(TEXT))}
    as_it_is = ast.unparse(ast.parse(TEXT)).splitlines()
    for text, code in found.items():
        assert len([line for line in as_it_is if line not in code.splitlines()]) == 1, text
    assert {
        "`if not x and y > 2` never", "`if not x and y > 2` always",
        "`not x and y > 2` without part 1", "`y > 2` with GtE", "`not x` without `not`", "3 for 2",
        "without `g(x)`", "`x + 3 if y else -x` the other way", "`x + 3` with Sub", "4 for 3",
        "`-x` without the minus",
    } <= set(found)  # fmt: skip
    assert not any("Text" in text or "1 for 0" in text for text in found)


def _module(text: str, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path) -> types.ModuleType:
    path = tmp_path / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr("changes.source", lambda m: text)
    return module


def test_a_module_runs_the_change(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    text = "def f(x):\n    return x + 3\n"
    module = _module(text, "small", monkeypatch, tmp_path)
    held = module.f
    (mutant,) = [m for m in mutants("small", ast.parse(text)) if "Sub" in m.text]
    assert change(module, mutant)
    assert held(5) == 2
    assert not change(module, mutant)


def test_cases_by_type_run_the_change(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    """They are all called `_`, and the name holds the last one alone."""
    text = """
from functools import singledispatch, singledispatchmethod
class Printer:
    @singledispatchmethod
    def of(self, x): return 0
    @of.register
    def _(self, x: int): return x + 3
    @of.register
    def _(self, x: str): return 0
@singledispatch
def of(x): return 0
@of.register
def _(x: int): return x + 3
@of.register
def _(x: str): return 0
"""
    module = _module(text, "cases", monkeypatch, tmp_path)
    ran = set()
    for mutant in [m for m in mutants("cases", ast.parse(text)) if "Sub" in m.text]:
        assert change(module, mutant)
        ran.add((module.Printer().of(5), module.of(5)))
    assert ran == {(2, 8), (8, 2)}


@pytest.mark.parametrize("part", PARTS)
def test_every_part_has_mutants(part: str) -> None:
    package, _ = PARTS[part]
    assert len(modules(package)) > 5


def test_caches_are_emptied() -> None:
    from literal_text import folded  # any module of this folder

    assert folded("λ_1") == "lambda_1"
    _forget()


@pytest.mark.full
def test_a_larger_sample_has_the_smaller_one() -> None:
    (small, total), (large, _) = drawn("derive", 3, 20), drawn("derive", 3, 40)
    assert large[:20] == small and total > 1000
    assert len({m.name for m in drawn("derive", 3, total)[0]}) == total


def test_notes_say_which_segment_is_reached(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    text = "def f(x):\n    if x:\n        x = 1\n    for _ in ():\n        x = 2\n    return x\n"
    module = _module(text, "noted", monkeypatch, tmp_path)
    reached: list[int] = []
    setattr(module, NOTE, reached.append)
    assert change(module, None) and module.f(0) == 0
    assert reached == [2, 4, 6]
    segments = {m.segment for m in mutants("noted", ast.parse(text))}
    assert segments == {2, 3, 5}


def test_a_statement_left_out_keeps_its_names(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    """A method that calls `super` no more has the same cell."""
    text = "class E(Exception):\n    def __init__(self):\n        super().__init__('said')\n"
    module = _module(text, "left_out", monkeypatch, tmp_path)
    (mutant,) = mutants("left_out", ast.parse(text))
    assert str(module.E()) == "said" and change(module, mutant) and str(module.E()) == ""


def test_what_kills_most_for_its_time_comes_first(tmp_path) -> None:
    known = Experience(tmp_path / "kept.json", {})
    for _ in range(20):
        known.add(["a::often[1]", "a::never", "a::slow"], "a::often[1]")
    tests = {"a::often[2]": 1.0, "a::never": 1.0, "a::slow": 9.0, "a::often[3]": 1.0}
    assert known.order(tests, "m") == ["a::often[2]", "a::often[3]", "a::never", "a::slow"]
    assert known.order({"a::x": 1.0, "test_m.py::y": 1.0}, "d.m")[0] == "test_m.py::y"


def test_processes_tell_and_one_that_dies_says_how() -> None:
    KEPT.mkdir(parents=True, exist_ok=True)
    tasks = [
        ("one", lambda: 1), ("dies", lambda: os._exit(9)), ("two", lambda: [2]),
        ("ends", lambda: os.kill(os.getpid(), signal.SIGKILL)),
    ]  # fmt: skip
    told = dict(_forked(iter(tasks), 2))
    assert told == {"one": 1, "dies": None, "two": [2], "ends": signal.SIGKILL}


def test_what_is_left_has_a_reason_each() -> None:
    data = json.loads(FIGURES.read_text("utf-8"))
    assert set(data) == {"parts", "equivalent", "reasons"}
    assert set(data["parts"]) == set(PARTS)
    for part, figures in data["parts"].items():
        left = [name for names in figures["others"].values() for name in names]
        assert part in PARTS and figures["killed"] + len(left) == figures["drawn"]
        assert all(data["equivalent"].get(n) or data["reasons"].get(n) for n in left), part
        killed, counted = score(figures)
        assert killed <= counted <= figures["drawn"]
    assert not set(data["equivalent"]) & set(data["reasons"])
