"""CITATION.cff says of the package what pyproject.toml says."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CITATION = (ROOT / "CITATION.cff").read_text(encoding="utf-8")


@pytest.mark.parametrize(("key", "field"), [("title", "name"), ("version",) * 2, ("license",) * 2])
def test_a_field_is_that_of_the_project(key: str, field: str) -> None:
    assert re.findall(rf"^{key}: (.*)$", CITATION, re.MULTILINE) == [PROJECT[field]]


def test_keywords_are_those_of_the_project() -> None:
    listed = re.search(r"^keywords:\n((?:  - .*\n)+)", CITATION, re.MULTILINE)
    assert listed is not None
    assert [line.removeprefix("  - ") for line in listed[1].splitlines()] == PROJECT["keywords"]
