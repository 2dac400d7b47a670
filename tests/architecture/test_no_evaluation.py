"""No text is ever turned into a program: the calls that could do it do not occur."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

BARE = {"eval", "exec", "compile", "__import__", "S", "symbols"}
"""Forbidden as a called name. `compile` and `S` are common words; as attributes they are fine."""

ANYWHERE = {"sympify", "parse_expr", "lambdify", "parse_latex", "parse_mathematica", "popen"}
"""Forbidden as a name and as an attribute of anything."""

OF_MODULES = {("os", "system"), ("builtins", "eval"), ("builtins", "exec"), ("builtins", "compile")}
"""Forbidden as attributes of these modules; elsewhere the words are innocent."""


def sources(root: Path) -> list[Path]:
    return sorted(p for top in ("dsfc", "backends") for p in (root / top).rglob("*.py"))


def calls(text: str) -> list[tuple[int, str]]:
    """Lists line and name of each forbidden call, and of each forbidden name that is handed on."""
    tree = ast.parse(text)
    own = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in BARE - own:
                found.append((node.lineno, node.func.id))
        elif isinstance(node, ast.Attribute):
            owner = node.value.id if isinstance(node.value, ast.Name) else ""
            if node.attr in ANYWHERE or (owner, node.attr) in OF_MODULES:
                found.append((node.lineno, node.attr))
        elif isinstance(node, ast.Name) and node.id in ANYWHERE:
            found.append((node.lineno, node.id))
        elif isinstance(node, ast.ImportFrom):
            found += [(node.lineno, a.name) for a in node.names if a.name in ANYWHERE]
    return found


def test_no_forbidden_call(root: Path) -> None:
    assert [
        f"{path.relative_to(root)}:{line} {name}"
        for path in sources(root)
        for line, name in calls(path.read_text(encoding="utf-8"))
    ] == []


def test_templates_do_not_evaluate_either(root: Path) -> None:
    words = ("eval(", "exec(", "__import__", "getattr(builtins", "pickle")
    assert [
        f"{path.relative_to(root)} {word}"
        for path in sorted((root / "backends").rglob("*.j2"))
        for word in words
        if word in path.read_text(encoding="utf-8").replace(".eval()", "")
    ] == []


@pytest.mark.parametrize(
    "text",
    [
        "eval('1')",
        "import sympy\nsympy.sympify('1')",
        "from sympy import lambdify as f",
        "exec(text)",
        "compile(text, 'f', 'exec')",
        "import os\nos.system(text)",
    ],
)
def test_the_scan_finds(text: str) -> None:
    assert calls(text)
