"""The programs of the page about models, and of the README of a folder, run as they stand."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from dsfc.cli import commands

pytestmark = pytest.mark.ci


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def started(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("transformers")
    environment = {"HF_HOME": str(folder), "PATH": "", "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder, env=environment, capture_output=True, text=True,
    )  # fmt: skip


def test_the_page_runs(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (root / "docs/how_to/write_a_model.md").read_text(encoding="utf-8")
    (command,) = blocks(page, "bash")
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(commands, command.split()[1:]).exit_code == 0
    checks = """
assert torch.equal(model.generate(prompt[1:], do_sample=False, **keep), greedy[1:])
assert torch.equal(assisted, greedy[1:])
assert beams.shape == greedy.shape
assert torch.equal(again.eval()(tokens).logits, model(tokens).logits)
"""
    done = started("\n".join(blocks(page, "python")) + checks, tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.full
def test_the_readme_of_a_folder_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    sizes = ("--width", "16", "--blocks", "1", "--vocabulary", "20")
    assert CliRunner().invoke(commands, ["model", "gla", "-o", ".", *sizes]).exit_code == 0
    (program,) = blocks((tmp_path / "README.md").read_text(encoding="utf-8"), "python")
    done = started(program, tmp_path)
    assert done.returncode == 0, done.stderr
