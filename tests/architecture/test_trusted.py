"""The trusted kernel is small, its size is published, and it does not rest on optional rules."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

PUBLISHED = {
    "dsfc/trusted": r"`dsfc/trusted`, the kernel, at most ([\d,]+) lines",
    "dsfc/trusted/rules": r"`dsfc/trusted/rules`, .*optional rules, at most ([\d,]+) lines",
}
"""Folder → what the documentation says of the size of its modules."""


def lines_of(folder: Path) -> int:
    return sum(len(f.read_text(encoding="utf-8").splitlines()) for f in folder.glob("*.py"))


def imported(file: Path) -> set[str]:
    """Names of the modules that a file imports from."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    modules = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            modules |= {node.module, *(f"{node.module}.{a.name}" for a in node.names)}
        elif isinstance(node, ast.Import):
            modules |= {a.name for a in node.names}
    return modules


@pytest.mark.parametrize("folder", PUBLISHED)
def test_a_trusted_folder_has_no_more_lines_than_are_published(root: Path, folder: str) -> None:
    text = (root / "docs" / "theory" / "proofs.md").read_text(encoding="utf-8")
    (limit,) = re.findall(PUBLISHED[folder], text)
    bound = int(limit.replace(",", ""))
    assert bound - 100 < lines_of(root / folder) <= bound


def test_only_the_table_of_rules_is_read_and_by_the_dispatcher_alone(root: Path) -> None:
    readers = {
        (file.name, module)
        for file in (root / "dsfc" / "trusted").glob("*.py")
        for module in imported(file)
        if module.startswith("dsfc.trusted.rules")
    }
    assert readers == {
        ("check.py", "dsfc.trusted.rules"),
        ("check.py", "dsfc.trusted.rules.RULES"),
    }
