"""`dsfc completion`: the scripts, and what the shells are told."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from dsfc.api.locate import spec_names
from dsfc.cli import commands
from dsfc.cli.completion import SHELLS


def offered(*words: str) -> list[str]:
    """What stands for the last word."""
    *args, incomplete = words
    found = ShellComplete(commands, {}, "dsfc", "_DSFC_COMPLETE").get_completions(args, incomplete)
    return [it.value for it in found if it.type == "plain"]


def test_commands_and_options_are_offered() -> None:
    assert offered("comp") == ["compare", "compile", "completion"]
    assert {"--form", "--gauge", "--mixer"} <= set(offered("show", "--"))
    assert offered("show", "s6", "--form", "k") == ["kronecker"]


@pytest.mark.parametrize("command", ["show", "check", "compile", "verify", "equiv", "atlas"])
def test_the_names_of_shipped_specs_are_offered(command: str) -> None:
    assert offered(command, "") == list(spec_names())
    assert offered(command, "rwkv") == ["rwkv4", "rwkv5", "rwkv6", "rwkv7", "rwkv7_block"]


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_is_one_of_that_shell(run: Callable, folder: Path, shell: str) -> None:
    done = run("completion", shell)
    assert done.exit_code == 0 and f"_DSFC_COMPLETE={shell}_complete" in done.stdout
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    script = folder / "script"
    script.write_text(done.stdout, encoding="utf-8")
    subprocess.run([shell, "-n", script], check=True)


def test_other_shells_are_refused(run: Callable) -> None:
    done = run("completion", "csh")
    assert done.exit_code == 2 and "fish" in done.stderr
