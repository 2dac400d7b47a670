"""What the README shows of a spec is what dsfc makes of it."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

import dsfc
from dsfc.cli import commands

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def block(name: str) -> str:
    """The code block behind a comment such as `<!-- spec: mine -->`."""
    found = re.search(rf"<!-- {name}: mine -->\n```\w*\n(.*?)```", README, re.DOTALL)
    assert found is not None
    return found[1]


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("readme") / "mine.dsf"
    path.write_text(block("spec"), encoding="utf-8")
    return path


def test_the_system_is_the_one_that_show_prints(spec: Path) -> None:
    shown = CliRunner().invoke(commands, ["show", str(spec), "--form", "kronecker"])
    assert shown.output == block("printed")


def test_the_loop_is_in_the_module(spec: Path) -> None:
    assert block("emitted") in dsfc.load(spec).module().text


def test_the_module_runs_as_shown(spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dsfc.compile(spec, out=spec.with_suffix(".py"))
    monkeypatch.syspath_prepend(str(spec.parent))
    (program,) = re.findall(r"```python\n(import torch\n.*?)```", README, re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(program, "README.md", "exec"), names)
    y = names["y"]
    assert isinstance(y, torch.Tensor) and y.shape == (2, 100, 4, 16)


def test_every_command_and_option_is_there() -> None:
    lines = re.findall(r"^dsfc ([a-z-]+)([^#\n]*)", README, re.MULTILINE)
    assert len(lines) >= 10
    for name, rest in lines:
        known = {o for p in commands.commands[name].params for o in p.opts}
        assert set(re.findall(r"--[a-z-]+", rest)) <= known, name


def test_diagrams_are_drawn_by_their_script(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(root / "docs"))
    diagrams = importlib.import_module("diagrams")
    for name in diagrams.DIAGRAMS:
        stored = root / "docs" / "pictures" / f"{name}.svg"
        assert stored.read_text(encoding="utf-8") == diagrams.drawn(name)


@pytest.mark.ci
def test_the_spectra_are_those_of_the_specs(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(root / "docs"))
    drawn = importlib.import_module("pictures").picture()
    assert (root / "docs" / "pictures" / "spectra.svg").read_text(encoding="utf-8") == drawn
