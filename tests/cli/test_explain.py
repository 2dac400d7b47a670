"""`dsfc explain`: pages for people."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from dsfc.cli import commands
from dsfc.diagnostics.catalogue import CODES, examples


@pytest.mark.parametrize("code", CODES)
def test_a_page_is_rendered(run: Callable, code: str) -> None:
    page = run("explain", code).output
    assert page.startswith(f"{code}: ") and "```" not in page
    assert page.count("\nwrong:\n    ") == page.count("\nright:\n    ") == 1
    for text in examples(code) or examples(code, "console") or ():
        assert all(f"    {line}\n" in page for line in text.splitlines() if line)


def test_a_terminal_shows_titles_and_code_in_colour(folder: Path) -> None:
    page = CliRunner().invoke(commands, ["explain", "E-SHAPE-MUL"], color=True).output
    assert page.startswith("\x1b[1mE-SHAPE-MUL: ") and "\x1b[36m`*`\x1b[0m" in page
    assert "    \x1b[36m  y = q · S\x1b[0m" in page
