"""Running commands, in this process or in one of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dsfc.cli import commands

sys.path.insert(0, str(Path(__file__).parent))

Run = Callable[..., Result]
Start = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DSFC_TRACEBACK", raising=False)
    return tmp_path


@pytest.fixture
def run(folder: Path) -> Run:
    """Runs a command in this process, from an empty folder."""

    def call(*args: str | Path) -> Result:
        return CliRunner().invoke(commands, [str(a) for a in args])

    return call


@pytest.fixture
def start(folder: Path) -> Start:
    """Runs the command line in a process of its own, from an empty folder."""

    def call(*args: str | Path, code: str | None = None, **variables: str) -> object:
        what = ["-m", "dsfc"] if code is None else ["-c", code]
        return subprocess.run(
            [sys.executable, *what, *map(str, args)],
            capture_output=True,
            text=True,
            encoding=variables.get("PYTHONIOENCODING", "utf-8"),
            env={**os.environ, **variables},
            timeout=120,
        )

    return call


@pytest.fixture
def spec(folder: Path) -> Callable[..., Path]:
    """Writes a spec into the current folder."""

    def write(text: str, name: str = "mine.dsf") -> Path:
        path = folder / name
        path.write_text(text, encoding="utf-8")
        return path

    return write
