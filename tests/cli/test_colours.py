"""Verdicts have their colours in every command, and none where no terminal is."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from dsfc.cli import commands
from dsfc.cli.colours import coloured

GREEN, RED, YELLOW = "\x1b[32m", "\x1b[31m", "\x1b[33m"


@pytest.mark.parametrize(
    ("line", "colour"),
    [
        ("gla: ok", GREEN),
        ("a = b: proved", GREEN),
        ("a = b: refuted", RED),
        ("a = b: unknown", YELLOW),
        ("SUB  a is a case of b: refuted, for no parameters", RED),
        ("accepted: a and b have equal outputs", GREEN),
        ("  forward   proved for all lengths", GREEN),
        ("  kept    definition     1.0 s", GREEN),
    ],
)
def test_a_verdict_has_its_colour(line: str, colour: str) -> None:
    shown = coloured(f"{line}\n")
    assert colour in shown and click.unstyle(shown) == f"{line}\n"


@pytest.mark.parametrize(
    "line", ["    proved 0 < a: it lies in (0, 1)", "  point", "    a: ok", ""]
)
def test_lines_without_a_verdict_are_as_they_are(line: str) -> None:
    assert coloured(line) == line


@pytest.mark.share(2)
@pytest.mark.parametrize(
    ("args", "colour"),
    [(["check", "linear_attn"], GREEN), (["equiv", "linear_attn", "linear_attn"], GREEN)],
    ids=str,
)
def test_commands_show_verdicts_in_colour_on_terminals_alone(
    folder: Path, args: list[str], colour: str
) -> None:
    terminal = CliRunner().invoke(commands, args, color=True).output
    pipe = CliRunner().invoke(commands, args).output
    assert colour in terminal and "\x1b" not in pipe
    assert click.unstyle(terminal) == pipe
