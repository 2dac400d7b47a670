"""`dsfc export`: what is asked wrongly is told, and nothing is written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

MIXER = "mixer mine { dims d; input u : d; state s : d; s = 1/2 * s[i-1] + u; y = s }"
MAP = "mixer mine { dims d; input u : d; param W : d -> d; state s : d; s = s[i-1] + W u; y = s }"


@pytest.mark.ci
def test_a_program_is_written_and_its_names_are_told(run: Callable, spec: Callable) -> None:
    result = run("export", spec(MIXER), "--size", "d=3", "-o", "mine.pt2")
    assert result.exit_code == 0, result.output
    path, names, error = result.stdout.splitlines()
    assert (path, names) == ("mine.pt2", "  takes u, s; gives y, s_next")
    assert error.startswith("  differs from the layer by ")
    program = torch.export.load("mine.pt2").module()
    u, s = torch.randn(2, 7, 3), torch.randn(2, 3)
    y, after = program(u=u, s=s)
    for i in range(7):
        s = 0.5 * s + u[:, i]
        torch.testing.assert_close(y[:, i], s)
    torch.testing.assert_close(after, s)


@pytest.mark.parametrize("words", ["d", "d=", "d=0", "d=-3", "=3", "d=2,d=3", "d=²"])
def test_a_size_that_is_none_is_a_wrong_command_line(
    words: str, run: Callable, spec: Callable, folder: Path
) -> None:
    result = run("export", spec(MIXER), "--size", words, "-o", "mine.pt2")
    assert result.exit_code == 2 and "--size" in result.stderr
    assert not Path("mine.pt2").exists()


def refused(result, problem: str, code: str = "E-EXPORT") -> None:
    assert result.exit_code == 1, result.output
    assert code in result.stderr and problem in result.stderr and "Traceback" not in result.stderr
    assert not Path("mine.pt2").exists()


def test_what_a_layer_lacks_is_told(run: Callable, spec: Callable) -> None:
    path = spec(MAP)
    assert run("compile", path).exit_code == 0
    ask = ("export", "mine.py", "-o", "mine.pt2")
    refused(run(*ask), "needs a size of d")
    refused(run(*ask, "--size", "d=3,n=2"), "has no axis n")
    refused(run(*ask, "--size", "d=999999999"), "allocate")
    ask = (*ask, "--size", "d=3", "--weights", "mine.pt")
    refused(run(*ask), "cannot be read")
    torch.save({"other": torch.ones(3)}, "mine.pt")
    refused(run(*ask), 'Missing key(s) in state_dict: "W". Unexpected key(s)')
    torch.save({"W": torch.ones(4, 4)}, "mine.pt")
    refused(run(*ask), "size mismatch for W")


def test_a_module_that_cannot_be_imported_is_told(run: Callable, folder: Path) -> None:
    Path("mine.py").write_text("1 / 0\n")
    ask = ("export", "mine.py", "-o", "mine.pt2")
    refused(run(*ask), "importing it raises ZeroDivisionError", "E-FILE")
    Path("mine.py").write_text("x = 1\n")
    refused(run(*ask), "not a module that dsfc wrote")
