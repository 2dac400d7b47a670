"""`dsfc info`."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest

from dsfc.api.pipeline import load


@pytest.fixture
def module(run: Callable, folder: Path) -> Path:
    """The module of a shipped spec."""
    assert run("compile", "s6").exit_code == 0
    return folder / "s6.py"


def test_a_module_says_where_it_comes_from(run: Callable, module: Path) -> None:
    text = load("s6").module("torch")
    result = run("info", "s6.py")
    assert result.exit_code == 0
    assert result.output == (
        "s6.py: s6: Selective state space of Mamba (S6)\n"
        f"  origin     dsfc {version('dsfc')}, torch backend, from s6.dsf; untouched\n"
        "  exports    S6, State, reference, s6\n"
        "  modes      recurrent, chunked, scan; chunks of 32 tokens\n"
        f"  spec       {text.identity.spec[:16]}\n"
        f"  operators  torch.ops.{text.namespace}\n"
    )


def test_an_edit_is_seen(run: Callable, module: Path) -> None:
    module.write_text(module.read_text(encoding="utf-8") + "# mine\n", encoding="utf-8")
    assert "; edited since\n" in run("info", "s6.py").output


def test_json_has_one_document_for_all(run: Callable, module: Path) -> None:
    found = json.loads(run("info", "--format", "json", "s6.py", "s6.py").output)
    assert found["format"] == 1 and len(found["modules"]) == 2
    assert found["modules"][0]["modes"] == ["recurrent", "chunked", "scan"]


def test_a_module_is_not_run(run: Callable, module: Path) -> None:
    text = module.read_text(encoding="utf-8")
    module.write_text(text + "open('ran', 'w')\n", encoding="utf-8")
    assert run("info", "s6.py").exit_code == 0
    assert not (module.parent / "ran").exists()


@pytest.mark.parametrize(
    ("edit", "problem"),
    [
        (lambda text: "import torch\n", "it is not a module that dsfc wrote"),
        (lambda text: text + "def (\n", "it was edited and can no longer be read"),
        (lambda text: text.replace("MODES =", "OTHERS ="), "it was edited and can no longer"),
        (lambda text: text.replace('MODES = ("rec', 'MODES = 3  # ("rec'), "it was edited and can"),
    ],
    ids=["another", "broken", "without modes", "modes of another kind"],
)
def test_what_dsfc_did_not_write_is_refused(
    run: Callable, module: Path, edit: Callable[[str], str], problem: str
) -> None:
    module.write_text(edit(module.read_text(encoding="utf-8")), encoding="utf-8")
    result = run("info", "s6.py")
    assert result.exit_code == 1 and "error[E-FILE]" in result.output
    assert problem in result.output


@pytest.mark.parametrize("name", ["none.py", "."])
def test_what_cannot_be_read_is_said(run: Callable, name: str) -> None:
    result = run("info", name)
    assert result.exit_code == 1 and "error[E-FILE]" in result.output
