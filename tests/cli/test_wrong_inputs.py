"""What a user may get wrong: one located line says what to change, and nothing is written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from wrong_inputs import BYTES, CALLS, CHANGES, RIGHT

MADE = [
    pytest.param(old, new, first, id=f"{kind}-{number}")
    for kind, changes in CHANGES.items()
    for number, (old, new, first) in enumerate(changes)
]


def refused(result: Result, first: str, folder: Path) -> None:
    """One diagnostic with this first line, at a place; the spec alone is in the folder."""
    code, _, message = first.partition(": ")
    lines = result.stderr.splitlines()
    assert result.exit_code == 1, result.output
    assert lines[0].startswith(f"error[{code}]: {message}"), lines[0]
    assert sum(line.startswith("error") for line in lines) == 1
    assert "Traceback" not in result.output and not result.stdout
    assert [it.name for it in folder.iterdir()] == ["mine.dsf"]


def test_there_are_three_or_more_of_each_kind_and_sixty_in_all() -> None:
    counts = [len(changes) for changes in CHANGES.values()]
    assert min(*counts, len(BYTES), len(CALLS)) >= 3
    assert sum(counts) + len(BYTES) + len(CALLS) >= 60


def test_the_right_spec_is_right(run: Callable, spec: Callable) -> None:
    assert run("check", spec(RIGHT)).exit_code == 0


@pytest.mark.share(2)
@pytest.mark.parametrize(("old", "new", "first"), MADE)
def test_a_change(old: str, new: str, first: str, run: Callable, folder: Path) -> None:
    assert old in RIGHT
    text = RIGHT.replace(old, new, 1)
    (folder / "mine.dsf").write_bytes(text.encode("utf-8", "surrogateescape"))
    result = run("compile", "mine.dsf")
    refused(result, first, folder)
    place = "  --> mine.dsf" if not first.startswith("E-FILE") else ""
    assert place in result.stderr


@pytest.mark.parametrize(("content", "first"), BYTES)
def test_no_spec_at_all(content: bytes, first: str, run: Callable, folder: Path) -> None:
    (folder / "mine.dsf").write_bytes(content)
    refused(run("compile", "mine.dsf"), first, folder)


@pytest.mark.parametrize(("arguments", "first"), CALLS)
def test_what_is_asked(
    arguments: list[str], first: str, run: Callable, spec: Callable, folder: Path
) -> None:
    spec(RIGHT)
    refused(run("compile", *arguments), first, folder)


def test_wrong_usage_names_what_is_wrong(run: Callable, spec: Callable, folder: Path) -> None:
    spec(RIGHT)
    result = run("compile", "mine.dsf", "--speed", "9")
    assert result.exit_code == 2 and not result.stdout
    assert "--speed" in result.stderr.splitlines()[0]
    assert [it.name for it in folder.iterdir()] == ["mine.dsf"]
