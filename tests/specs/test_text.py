"""The text of emitted modules: formatted, short, on its own."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import emitted
import pytest
from dsfc.backends.shared.section import section

from dsfc.validate.surface import surface

WIDTH = 100

ALONE = """
import importlib.util, json, sys
sys.modules["dsfc"] = None  # importing it is an error from here on
import torch
for path, sizes, inputs in json.loads(sys.argv[1]):
    spec = importlib.util.spec_from_file_location("emitted", path)
    module = sys.modules["emitted"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (cls,) = (getattr(module, n) for n in module.__all__
              if n != "State" and isinstance(getattr(module, n), type))
    given = {n: torch.rand(2, 5, *axes, requires_grad=True) for n, axes in inputs.items()}
    layer = cls(**sizes)
    y = layer(**given, return_state=True)[0] if getattr(module, "CAUSAL", True) else layer(**given)
    y.sum().backward()
    assert all(x.grad is not None for x in given.values()), path
print("all of them")
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("texts")
    paths = []
    for name in emitted.PROMISED:
        made = emitted.text(name)
        assert made is not None
        paths.append(folder / f"{name}_.py")
        paths[-1].write_text(made.text, encoding="utf-8")
    return paths


@pytest.mark.ci
def test_a_formatter_changes_nothing(files: list[Path]) -> None:
    pytest.importorskip("ruff")
    command = [sys.executable, "-m", "ruff", "format", "--isolated", f"--line-length={WIDTH}"]
    done = subprocess.run(
        [*command, "--diff", *map(str, files)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[:2000] + done.stderr[-500:]


@pytest.mark.share(1, ci=3)
def test_every_line_fits(name: str) -> None:
    made = emitted.text(name)
    assert made is not None
    for number, line in enumerate(made.text.splitlines(), 1):
        assert len(line) <= WIDTH and line == line.rstrip(), f"{name}, line {number}: {line}"


def test_the_own_part_of_normalised_attention_is_short() -> None:
    made = emitted.text("normalized_attn")
    assert made is not None
    head, registered = made.text.split(section().text)
    own, _ = head.split("# --- runtime -")
    assert registered.count("\n") < 12
    docs = [
        node.body[0]
        for node in ast.walk(ast.parse(own))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node)
    ]
    # Docstrings do not count: nobody is to leave out what they say.
    lines = own.count("\n") - sum(d.end_lineno - d.lineno + 1 for d in docs)
    assert lines <= 435


def test_one_search_finds_the_normaliser() -> None:
    made = emitted.text("normalized_attn")
    assert made is not None
    assert sum(line.strip().startswith("eta = ") for line in made.text.splitlines()) == 2
    assert "eta = torch.exp(" in made.text  # once in the functional form, once in the reference


@pytest.mark.ci
def test_a_module_needs_torch_and_nothing_of_the_compiler(
    files: list[Path], load: Callable[[str], ModuleType]
) -> None:
    found = [(path, surface(load(path.stem.rstrip("_")))) for path in files]
    given = [(str(path), dict(s.sizes), dict(s.inputs)) for path, s in found]
    done = subprocess.run(
        [sys.executable, "-I", "-W", "ignore", "-c", ALONE, json.dumps(given)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "all of them", done.stderr[-2000:]
