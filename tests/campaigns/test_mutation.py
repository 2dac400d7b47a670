"""The tool that changes passes: changes are what they say, and the survivors found are known."""

from __future__ import annotations

import ast
import importlib.util
import json

import pytest
from mutation import FIGURES, PARTS, Mutant, _Changed, _forget, change, modules, mutants

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
    return ast.unparse(_Changed(numbers, mutant).visit(tree))


def test_each_mutant_changes_one_place() -> None:
    found = {m.text: changed(m) for m in mutants("m", ast.parse(TEXT))}
    as_it_is = ast.unparse(ast.parse(TEXT)).splitlines()
    for text, code in found.items():
        differs = [a for a, b in zip(as_it_is, code.splitlines(), strict=True) if a != b]
        assert len(differs) == 1, text
    assert {
        "`if not x and y > 2` never", "`if not x and y > 2` always",
        "`not x and y > 2` without part 1", "`y > 2` with GtE", "`not x` without `not`", "3 for 2",
        "without `g(x)`", "`x + 3 if y else -x` the other way", "`x + 3` with Sub", "4 for 3",
        "`-x` without the minus",
    } <= set(found)  # fmt: skip
    assert not any("Text" in text or "1 for 0" in text for text in found)


def test_a_module_runs_the_change(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    path = tmp_path / "small.py"
    path.write_text("def f(x):\n    return x + 3\n")
    spec = importlib.util.spec_from_file_location("small", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr("mutation._source", lambda m: path.read_text())
    held = module.f
    (mutant,) = [m for m in mutants("small", ast.parse(path.read_text())) if "Sub" in m.text]
    change(module, mutant)
    assert held(5) == 2


@pytest.mark.parametrize("part", PARTS)
def test_every_part_has_mutants(part: str) -> None:
    package, _ = PARTS[part]
    assert len(modules(package)) > 5


def test_caches_are_emptied() -> None:
    from literal_text import folded  # any module of this folder

    assert folded("λ_1") == "lambda_1"
    _forget()


def test_every_survivor_has_a_reason() -> None:
    known = json.loads(FIGURES.read_text("utf-8"))
    reasons = known.pop("reasons")
    for part, found in known.items():
        left = [name for names in found["others"].values() for name in names]
        since = found.get("killed since, by tests written for them", 0)
        assert part in PARTS and found["killed"] + since + len(left) == found["tried"]
        assert set(left) <= set(reasons), f"{part}: {set(left) - set(reasons)}"
