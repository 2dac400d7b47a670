"""SPEC:MIXER: every command that takes a mixer takes one of a file that defines several."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dsfc.cli import commands

TWO = """mixer kept { dims d; input u : d; y = u }
mixer doubled { dims d; input u : d; y = 2 * u }
"""
ONE_MIXER = ("show two.dsf:doubled", "compile two.dsf:doubled -o -", "check two.dsf:doubled",
             "verify two.dsf:doubled --kernels", "atlas two.dsf:doubled two.dsf:kept",
             "equiv two.dsf:doubled two.dsf:doubled")  # fmt: skip


@pytest.mark.parametrize("line", ONE_MIXER)
def test_a_command_takes_a_mixer_behind_a_colon(run: Callable, spec: Callable, line: str) -> None:
    spec(TWO, "two.dsf")
    done = run(*line.split())
    assert done.exit_code == 0 and "doubled" in done.stdout


def test_every_command_that_takes_a_spec_says_so() -> None:
    whole = {"fmt"}  # the files themselves
    for name, command in commands.commands.items():
        for param in command.params:
            if param.type.name == "spec" and name not in whole:
                assert ":MIXER]" in (param.metavar or ""), name


def test_of_several_mixers_only_the_chosen_is_checked(run: Callable, spec: Callable) -> None:
    spec(f"{TWO}mixer wrong {{ dims d; input u : d; y = u + x }}\n", "two.dsf")
    assert run("check", "two.dsf").exit_code == 1
    checked = run("check", "two.dsf:kept")
    assert checked.exit_code == 0 and "doubled" not in checked.stdout


def test_what_is_not_there_is_told(run: Callable, spec: Callable) -> None:
    spec(TWO, "two.dsf")
    for command in ("show", "compile", "check"):
        refused = run(command, "two.dsf:halved")
        assert refused.exit_code == 1 and "E-MIXER" in refused.output
    twice = run("show", "two.dsf:kept", "--mixer", "doubled")
    assert twice.exit_code == 2 and "--mixer doubled" in twice.stderr


def test_a_file_of_that_very_name_comes_first(run: Callable, spec: Callable, folder: Path) -> None:
    spec(TWO, "two.dsf")
    spec("mixer other { dims d; input u : d; y = 3 * u }\n", "two.dsf:kept")
    assert run("show", "two.dsf:kept").stdout.startswith("other")
