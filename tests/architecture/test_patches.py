"""Tests replace public names alone: what is private may change without them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

OWN = ("self", "cls")


def _is_private(name: object) -> bool:
    return isinstance(name, str) and name.startswith("_") and not name.startswith("__")


def patched(text: str) -> Iterator[str]:
    """Yields the private names that a test gives to something that is not its own."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Delete):
            given = node.targets if isinstance(node, ast.Assign | ast.Delete) else [node.target]
            for part in (n for target in given for n in ast.walk(target)):
                if not isinstance(getattr(part, "ctx", None), ast.Store | ast.Del):
                    continue
                if isinstance(part, ast.Attribute) and _is_private(part.attr):
                    if not (isinstance(part.value, ast.Name) and part.value.id in OWN):
                        yield part.attr
        elif isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            called = node.func.id if isinstance(node.func, ast.Name) else called
            if called in ("setattr", "delattr", "setitem", "object"):
                names = [a.value for a in node.args if isinstance(a, ast.Constant)]
                yield from (str(n) for n in names[:1] if _is_private(n))


@pytest.mark.full
def test_tests_patch_no_private_name(root: Path) -> None:
    found = {
        file.relative_to(root).as_posix(): names
        for file in (root / "tests").rglob("*.py")
        if (names := list(patched(file.read_text(encoding="utf-8"))))
    }
    assert found == {}


def test_a_patch_of_a_private_name_is_seen() -> None:
    seen = 'm._a = 1; p.setattr(m, "_b", 2); m._c, x = 3, 4; self._own = 5; m.d = 6; y = m._e'
    assert list(patched(seen)) == ["_a", "_c", "_b"]
