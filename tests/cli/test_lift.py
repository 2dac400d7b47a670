"""`dsfc lift`, and PyTorch modules as arguments of `dsfc equiv`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dsfc.cli.lift import is_module

LAYER = """\
import torch
import torch.nn as nn


class Average(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.a = nn.Parameter(torch.zeros(dim))

    def forward(self, u):
        h = torch.zeros_like(u[:, 0])
        out = []
        for t in range(u.size(1)):
            h = torch.sigmoid(self.a) * h + u[:, t]
            out.append(h)
        return torch.stack(out, 1)
"""

SAME = """\
mixer same {
  dims d
  input u : d
  param a : d
  state h : d
  h = sigmoid(a) * h[i-1] + u
  y = h
}
"""


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("layer.py:Layer", True),
        ("a/b.py:make", True),
        ("s6", False),
        ("s6.dsf:s6", False),
        ("layer.py", False),
        ("file.dsf", False),
        ("layer.py:a.b", False),
    ],
)
def test_files_are_run_for_words_of_one_form_alone(word: str, expected: bool) -> None:
    assert is_module(word) is expected


def test_a_word_of_another_form_is_wrong_usage(run: Callable) -> None:
    assert run("lift", "s6").exit_code == 2
    assert run("equiv", "s6", "s6", "--arg", "d=4").exit_code == 2


def test_the_help_says_that_the_file_is_run(run: Callable) -> None:
    for command in ("lift", "equiv"):
        assert "RUNS it" in run(command, "--help").output


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "layer.py").write_text(LAYER, encoding="utf-8")
    (tmp_path / "same.dsf").write_text(SAME, encoding="utf-8")
    return tmp_path


@pytest.mark.ci
def test_the_spec_is_written_once_and_said_to_be_tested(run: Callable, folder: Path) -> None:
    result = run("lift", "layer.py:Average", "--arg", "dim=6")
    assert result.exit_code == 0, result.output
    assert "written: average.dsf" in result.output
    assert "tested, not proved" in result.output
    text = (folder / "average.dsf").read_text(encoding="utf-8")
    assert "  h = sigmoid(a) * h[i-1] + u\n" in text
    assert run("check", "average.dsf").exit_code == 0
    again = run("lift", "layer.py:Average", "--arg", "dim=6")
    assert again.exit_code == 1 and "E-FILE" in again.output


@pytest.mark.ci
def test_a_module_stands_where_a_spec_does(run: Callable, folder: Path) -> None:
    result = run("equiv", "same.dsf", "layer.py:Average", "--arg", "dim=6")
    assert result.exit_code == 0, result.output
    assert "same = average: proved" in result.output


@pytest.mark.ci
def test_a_missing_argument_is_named(run: Callable, folder: Path) -> None:
    result = run("lift", "layer.py:Average")
    assert result.exit_code == 1
    assert "`Average` wants dim" in result.output and "--arg dim=…" in result.output


@pytest.mark.ci
@pytest.mark.parametrize(
    ("text", "said"),
    [("1 / 0\n", "importing the file raises"), ("x = 1\n", "the file has no `Average`")],
)
def test_a_file_that_has_no_module_is_a_diagnostic(
    run: Callable, folder: Path, text: str, said: str
) -> None:
    (folder / "layer.py").write_text(text, encoding="utf-8")
    result = run("lift", "layer.py:Average")
    assert result.exit_code == 1 and "E-LIFT" in result.output and said in result.output
