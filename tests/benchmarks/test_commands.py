"""What commands start and compilers work is read from processes, and stays within its bars."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from benchmarks import commands, tables

FOUND = json.loads(tables.COMMANDS.read_text(encoding="utf-8"))


def test_a_shell_tells_of_its_children() -> None:
    log = "0m0.001s 0m0.002s\n0m1.250s 0m0.130s\n0m0.000s 0m0.000s\n1m2.000s 0m0.500s\n"
    assert commands.worked(log) == [1.38, 62.5]


@pytest.mark.ci
def test_a_process_that_works_longer_is_told_from_one_that_does_not() -> None:
    counting = [sys.executable, "-c", "sum(range(30_000_000))"]
    assert commands.processor_seconds(counting) > commands.processor_seconds([*counting[:2], ""])


def test_commands_are_those_that_people_start(tmp_path: Path) -> None:
    assert [*commands.commands(tmp_path)] == [*FOUND["commands"]]


@pytest.mark.parametrize("command", ["--help", "check", "compile"])
def test_a_command_starts_within_a_few_imports(command: str) -> None:
    found = FOUND["commands"]
    imports = found["import sympy"] + (found["import torch"] if command == "compile" else 0)
    assert found[f"dsfc {command}"] <= 5 * imports


def test_a_kernel_is_compiled_in_two_seconds_and_once() -> None:
    assert all(made["compiled again"] == 0 for made in FOUND["kernels"].values())
    assert max(s for made in FOUND["kernels"].values() for s in made["seconds"]) <= 2
