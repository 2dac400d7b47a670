"""Imports form no circle: not between packages, and inside a package only where it is listed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from dsfc.expr.graph import components

Graph = dict[str, set[str]]

RECURSIVE = {
    "dsfc.mixer.expressions": "the types of expressions, whose forms hold expressions",
    "dsfc.matrices.matrices": "a notebook shows matrices as `dsfc.matrices.html` does",
    "dsfc.structure.ir": "a notebook shows a structure as `dsfc.structure.html` does",
    "dsfc.mixer.ir": "a notebook shows a mixer as `dsfc.mixer.html` does",
    "dsfc.trusted.symbols": "laws of functions are made of the generators that apply them",
    "dsfc.plan.ir": "a plan gives its graph as `dsfc.plan.flow_graph` does",
}
"""A module of each circle inside a package, and why its modules read each other."""


def imported(module: str, file: Path, modules: set[str]) -> Iterator[str]:
    """Yields the modules that a module imports, at its top or inside a function."""
    package = module.split(".") if file.name == "__init__.py" else module.split(".")[:-1]
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield from (
                name if (name := f"{base}.{a.name}") in modules else base for a in node.names
            )


@pytest.fixture(scope="module")
def graph(root: Path) -> Graph:
    """Module → the modules of the project that it imports."""
    files = {}
    for top in ("dsfc", "backends"):
        for file in (root / top).rglob("*.py"):
            parts = file.relative_to(root).with_suffix("").parts
            files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return {m: set(imported(m, f, set(files))) & set(files) - {m} for m, f in files.items()}


def circles(graph: Graph) -> list[tuple[str, ...]]:
    """Returns the sets of nodes that read each other."""
    return [c for c in components(graph) if len(c) > 1]


@pytest.mark.ci
def test_packages_read_each_other_one_way(graph: Graph) -> None:
    packages: Graph = {}
    for module, read in graph.items():
        own = ".".join(module.split(".")[:2])
        reached = {".".join(m.split(".")[:2]) for m in read}
        packages.setdefault(own, set()).update(reached - {own, "dsfc", "backends"})
    assert len(packages) > 20 and circles(packages) == []


@pytest.mark.ci
def test_modules_read_each_other_one_way_but_where_it_is_listed(graph: Graph) -> None:
    found = circles(graph)
    unlisted = [c for c in found if not set(c) & set(RECURSIVE)]
    assert unlisted == []
    assert len(found) == len(RECURSIVE)
    assert not any(m.startswith("dsfc.system") for c in found for m in c)


def test_a_circle_is_seen() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == [("b", "c")]
