"""Names of values say what the values are, and renamed things keep no second name."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

EMPTY = {"found", "made", "it", "given"}
"""Names that say nothing of a value."""

LEFT = ("backends/", "dsfc/plan/", "dsfc/fused/", "dsfc/kernels/", "dsfc/kernel_ir/")
"""Folders that still have such names."""
MOST = 112
"""How many they have together at most. The number only falls."""


def bound_names(tree: ast.AST) -> Iterator[str]:
    """Yields the empty names that a file binds, each once in a scope."""
    scopes = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef,
              ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)  # fmt: skip
    own: set[str] = set()
    pending = list(ast.iter_child_nodes(tree))
    while pending:
        node = pending.pop()
        if isinstance(node, scopes):
            yield from bound_names(node)
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            own.add(node.id)
        elif isinstance(node, ast.arg):
            own.add(node.arg)
        elif isinstance(node, ast.MatchAs | ast.MatchStar) and node.name:
            own.add(node.name)
        pending += ast.iter_child_nodes(node)
    if not isinstance(tree, ast.ClassDef):  # a class has attributes, which are read behind a dot
        yield from own & EMPTY


def test_local_names_name_values(root: Path) -> None:
    count = Counter[str]()
    for top in ("dsfc", "backends"):
        for file in (root / top).rglob("*.py"):
            names = list(bound_names(ast.parse(file.read_text(encoding="utf-8"))))
            count[file.relative_to(root).as_posix()] += len(names)
    assert {f: n for f, n in count.items() if n and not f.startswith(LEFT)} == {}
    assert count.total() <= MOST


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("def f(it): return it", ["it"]),
        ("found = [made for made in x]", ["made", "found"]),
        ("match x:\n case [given]: pass", ["given"]),
        ("x.found = y", []),
    ],
)
def test_an_empty_name_is_seen(text: str, names: list[str]) -> None:
    assert list(bound_names(ast.parse(text))) == names
