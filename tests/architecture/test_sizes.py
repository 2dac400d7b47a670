"""Modules and templates are short enough to be read in one go; those that are not yet are listed.

What is listed may not grow beyond its bound, and leaves the list once it is short.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

MODULE = 500
"""Lines of a module, at most."""

TEMPLATE, CONDITIONS = 150, 10
"""Lines of a template, and its conditions, at most."""

HOUSE = 135_600
"""Lines of `dsfc/` and `backends/` with templates, at most."""

LONG_MODULES: dict[str, int] = {}
LONG_TEMPLATES: dict[str, int] = {}
TEMPLATES_OF_MANY_CONDITIONS: dict[str, int] = {}

_CONDITION = re.compile(r"\{%-?\s*(?:if|elif|else)\b|\bif\b[^{}%]*\belse\b(?=[^{}]*\}\})")


def sources(root: Path, *endings: str) -> Iterator[tuple[str, str]]:
    """Path from the top and text of each source file."""
    for folder in ("dsfc", "backends"):
        for file in sorted((root / folder).rglob("*")):
            if file.suffix in endings and file.is_file():
                yield file.relative_to(root).as_posix(), file.read_text(encoding="utf-8")


def lines(text: str) -> int:
    return len(text.splitlines())


def assert_listed(sizes: dict[str, int], limit: int, listed: dict[str, int]) -> None:
    assert {path for path, n in sizes.items() if n > limit} == set(listed)
    assert all(sizes[path] <= bound for path, bound in listed.items())


def test_modules_are_short_but_for_those_listed(root: Path) -> None:
    sizes = {path: lines(text) for path, text in sources(root, ".py", ".h")}
    assert_listed(sizes, MODULE, LONG_MODULES)


def test_templates_are_short_but_for_those_listed(root: Path) -> None:
    sizes = {path: lines(text) for path, text in sources(root, ".j2")}
    assert_listed(sizes, TEMPLATE, LONG_TEMPLATES)


def test_templates_decide_little_but_for_those_listed(root: Path) -> None:
    counts = {path: len(_CONDITION.findall(text)) for path, text in sources(root, ".j2")}
    assert_listed(counts, CONDITIONS, TEMPLATES_OF_MANY_CONDITIONS)


def test_the_house_does_not_grow(root: Path) -> None:
    total = sum(lines(text) for _, text in sources(root, ".py", ".h", ".j2"))
    assert total <= HOUSE
