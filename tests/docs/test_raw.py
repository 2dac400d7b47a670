"""Sources of pages as a forge shows them: what the build makes says where to find the same."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from dsfc.api.locate import spec_names
from dsfc.cli import commands
from dsfc.diagnostics.catalogue import CODES
from dsfc.mixer.words import WORDS

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
_DIRECTIVE = re.compile(r"^```\{([a-z-]+)\}[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ADDED = re.compile(r'add_directive\("([a-z-]+)"')
_QUOTED = re.compile(r"`([^`]+)`")


def own_directives() -> set[str]:
    """The directives that these pages define."""
    return {
        name
        for file in (DOCS / "_ext").glob("*.py")
        for name in _ADDED.findall(file.read_text(encoding="utf-8"))
    }


def made() -> Iterator[tuple[str, str]]:
    """The page and the text of each place that the build fills."""
    own = own_directives()
    for file in sorted(DOCS.rglob("*.md")):
        if "_build" not in file.parts and file.parent.name != "mixers":
            for name, text in _DIRECTIVE.findall(file.read_text(encoding="utf-8")):
                if name in own:
                    yield file.relative_to(ROOT).as_posix(), text


@pytest.mark.parametrize(("page", "text"), list(made()))
def test_what_the_build_makes_names_a_command_or_a_file_with_the_same(page: str, text: str) -> None:
    quoted = _QUOTED.findall(text)
    assert quoted, page
    for said in quoted:
        program, *words = said.split()
        if program != "dsfc":
            assert (ROOT / said).is_file(), said
        elif words[0] == "--help":
            continue
        else:
            assert words[0] in commands.commands, said
            known = {*WORDS, *CODES, *spec_names()}
            assert all(w in known for w in words[1:2] if not w.startswith("--")), said


def test_pages_are_made_in_some_places() -> None:
    assert {"docs/reference/primitives.md", "docs/reference/errors.md"} <= {p for p, _ in made()}
