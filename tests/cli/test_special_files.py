"""Files that are none to read, and names that no file can have: one coded line, exit code 1."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
import torch
from click.testing import Result

from dsfc.emit.importing import import_module

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here"),
    pytest.mark.timeout(60),  # what waits for a pipe waits for ever
]

READERS = {
    "check": ("check", "{}"),
    "compile": ("compile", "{}"),
    "show": ("show", "{}"),
    "fmt": ("fmt", "{}"),
    "fmt --check": ("fmt", "--check", "{}"),
    "fmt --diff": ("fmt", "--diff", "{}"),
    "equiv": ("equiv", "{}", "s6"),
    "equiv, second": ("equiv", "s6", "{}"),
    "equiv, mixer": ("equiv", "{}:mine", "s6"),
    "check-proof": ("check-proof", "{}"),
    "atlas": ("atlas", "--no-cache", "{}"),
    "convert": ("convert", "linear_attn", "linear_attn", "{}", "--out", "new.pt"),
    "info": ("info", "{}"),
    "report": ("report", "{}"),
    "report --data": ("report", "linear_attn", "--data", "{}"),
    "report --weights": ("report", "linear_attn", "--weights", "{}"),
    "report --atlas": ("report", "linear_attn", "--atlas", "{}"),
    "verify": ("verify", "{}"),
    "verify --spec": ("verify", "linear_attn.py", "--spec", "{}"),
}
"""Commands that read a file, `{}`."""

WRITERS = {
    "compile": ("compile", "linear_attn", "-o", "{}"),
    "new": ("new", "mine", "-o", "{}"),
    "equiv --certificate": ("equiv", "linear_attn", "linear_attn", "--certificate", "{}"),
    "equiv --replay": ("equiv", "linear_attn", "gla", "--replay", "{}"),
    "atlas": ("atlas", "--no-cache", "linear_attn", "--picture", "{}.png"),
    "convert": ("convert", "linear_attn", "linear_attn", "weights.pt", "--out", "{}"),
    "report": ("report", "linear_attn", "--tokens", "2", "-o", "{}"),
}
"""Commands that write a file, `{}`."""

IMPOSSIBLE = {
    "too long a name": "n" * 300,
    "too long a path": "p/" * 3000 + "p",
    "in a file": "there/new",
    "in no folder": "nowhere/new",
    "a loop of links": "loop/new",
    "where nothing can be made": "/proc/new",
}
"""Where no file can be written."""


@pytest.fixture
def world(folder: Path, run: Callable[..., Result]) -> Iterator[Path]:
    """A folder with what the commands need beside the file in question."""
    os.mkfifo(folder / "pipe")
    (folder / "directory").mkdir()
    (folder / "loop").symlink_to("loop")
    (folder / "there").write_text("there", encoding="utf-8")
    assert run("compile", "linear_attn").exit_code == 0
    yield folder


def refused(result: Result) -> None:
    """Diagnostics with codes, or wrong usage that is told before anything is read."""
    assert result.exit_code in (1, 2), (result.exception, result.output)
    lines = [it for it in result.output.splitlines() if it.startswith("error")]
    assert len(lines) == 1
    coded = ("error[E-FILE]: ", "error[E-CONVERT]: ", "error[E-REPORT]: ")
    assert lines[0].startswith(coded) if result.exit_code == 1 else lines[0].startswith("error: ")


@pytest.mark.share(9)
@pytest.mark.parametrize("kind", ["pipe", "directory", "loop", "/dev/zero"])
@pytest.mark.parametrize("command", READERS)
def test_only_regular_files_are_read(
    command: str, kind: str, world: Path, run: Callable[..., Result]
) -> None:
    if command.startswith("fmt") and kind == "directory":
        return  # all specs below it
    refused(run(*(word.format(kind) for word in READERS[command])))


def test_a_pipe_is_called_a_pipe(world: Path, run: Callable[..., Result]) -> None:
    said = run("compile", "pipe").stderr.splitlines()[0]
    assert said == "error[E-FILE]: pipe: is a named pipe, not a regular file"


def test_a_base_that_is_a_pipe_is_not_waited_for(
    world: Path, spec: Callable[..., Path], run: Callable[..., Result]
) -> None:
    os.mkfifo(world / "mine_base.dsf")
    refused_base = run("check", spec("mixer mine extends mine_base { y = u }\n"))
    assert refused_base.exit_code == 1 and "E-BASE" in refused_base.output


@pytest.mark.share(60)
@pytest.mark.parametrize("where", IMPOSSIBLE)
@pytest.mark.parametrize("command", WRITERS)
def test_a_file_that_cannot_be_written_is_told_in_a_line(
    command: str, where: str, world: Path, run: Callable[..., Result]
) -> None:
    if command == "convert":
        layer = import_module(world / "linear_attn.py").LinearAttn(d=8)
        torch.save(layer.state_dict(), world / "weights.pt")
    before = sorted(it.name for it in world.iterdir())
    refused(run(*(word.format(IMPOSSIBLE[where]) for word in WRITERS[command])))
    assert sorted(it.name for it in world.iterdir()) == before


@pytest.mark.share(3)
@pytest.mark.parametrize("command", READERS)
def test_names_that_no_file_can_have_are_told_in_a_line(
    command: str, world: Path, run: Callable[..., Result]
) -> None:
    for name in (IMPOSSIBLE["too long a name"], IMPOSSIBLE["too long a path"], "there/x", "loop/x"):
        refused(run(*(word.format(name) for word in READERS[command])))


def test_a_full_disk_behind_standard_output_is_told_in_a_line(
    run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    echo = click.echo

    def full(message: object = None, *, err: bool = False, **how: object) -> None:
        if not err:
            raise OSError(errno.ENOSPC, "No space left on device")
        echo(message, err=True)

    monkeypatch.setattr(click, "echo", full)
    result = run("explain", "E-LIMIT")
    refused(result)
    assert "standard output: no space left on device" in result.output
