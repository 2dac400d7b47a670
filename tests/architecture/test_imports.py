"""Which module may import which: what import-linter checks, and what it cannot see."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

HEAVY = ("torch", "triton", "sympy", "flint", "networkx", "jinja2", "lark", "matplotlib")
ORACLES_MAY_IMPORT = {
    "__future__",
    "collections",
    "dataclasses",
    "math",
    "numpy",
    "torch",
    "typing",
}


@cache
def imports(path: Path) -> tuple[tuple[int, str], ...]:
    """Returns the line and the full name of each absolute import of a file."""
    return tuple(_imports(ast.parse(path.read_text(encoding="utf-8"))))


def _imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            for alias in node.names:
                yield node.lineno, f"{node.module}.{alias.name}"


def layers_of(project: dict) -> list[str]:
    """Returns the layers of packages from top to bottom."""
    (layers,) = (
        c["layers"]
        for c in project["tool"]["importlinter"]["contracts"]
        if c["name"] == "the pipeline flows one way"
    )
    return layers


def test_import_contracts_hold(root: Path) -> None:
    lint = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()"],
        cwd=root,
        capture_output=True,
        text=True,
    )
    assert lint.returncode == 0, lint.stdout + lint.stderr


def test_contract_names_every_package(root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    layers = layers_of(project)
    named = {name.strip() for layer in layers for name in layer.split("|")}
    files = (root / "dsfc").iterdir()
    packages = {
        f"dsfc.{f.stem}" for f in files if f.suffix == ".py" or (f / "__init__.py").exists()
    }
    assert named == packages - {"dsfc.__init__", "dsfc.__main__"}


def test_stages_of_the_pipeline_are_in_the_order_of_the_contract(root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    layers = layers_of(project)
    rank = {
        name.strip(): height
        for height, layer in enumerate(reversed(layers))
        for name in layer.split("|")
    }
    tree = ast.parse((root / "dsfc" / "api" / "pipeline.py").read_text(encoding="utf-8"))
    rows = [row for row in (ast.get_docstring(tree) or "").splitlines() if row.startswith("| ")]
    stages = [f"dsfc.{row.split('`')[-2].split('/')[1]}" for row in rows if "`dsfc/" in row]
    ranks = [rank[stage] for stage in stages]
    assert len(stages) == 7 and ranks == sorted(ranks)


def test_importing_dsfc_loads_nothing_heavy() -> None:
    code = f"import dsfc, sys; print([m for m in {HEAVY!r} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


@pytest.mark.ci
def test_the_core_reaches_backends_and_data_by_name_only(root: Path) -> None:
    banned = ("dsfc.backends", "dsfc.grammar", "dsfc.specs", "backends", "grammar", "specs")
    found = [
        f"{path.relative_to(root)}:{line} {name}"
        for path in (root / "dsfc").rglob("*.py")
        for line, name in imports(path)
        if any(f"{name}.".startswith(f"{b}.") for b in banned)
    ]
    assert found == []


@pytest.mark.ci
def test_imports_inside_functions_are_few_and_in_known_places(root: Path) -> None:
    """Only start-up time (the command line), torch and SymPy excuse an import inside a function."""
    allowed = ("dsfc/__init__.py", "dsfc/cli/", "dsfc/validate/")
    found = []
    for path in sorted((root / "dsfc").rglob("*.py")):
        name = path.relative_to(root).as_posix()
        if name.startswith(allowed):
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for function in ast.walk(tree):
            if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            for node in ast.walk(function):
                if isinstance(node, ast.Import):
                    found += [f"{name}:{node.lineno} {a.name}" for a in node.names]
                elif isinstance(node, ast.ImportFrom):
                    found.append(f"{name}:{node.lineno} {node.module}")
    lazy = (
        "networkx",
        "sympy",
        "lark",
        "jinja2",
        "numpy",
        "sympy_bridge",
        "matrices",
        "latex",
        "flow_graph",
        "html",
        "shown",
        "analysis",
    )
    lazy += ("onnx", "reference", "onnxruntime", "onnxscript")  # of an extra that few need
    lazy += ("flint",)  # where it is not installed, SymPy stands in
    assert [f for f in found if not f.split()[-1].split(".")[-1].endswith(lazy)] == []


@pytest.mark.ci
@pytest.mark.parametrize("module", ["dsfc", "backends"])
def test_no_module_reads_pickles(root: Path, module: str) -> None:
    banned = ("pickle", "marshal", "shelve", "dill", "cloudpickle")
    found = [
        f"{path.relative_to(root)}:{line} {name}"
        for path in (root / module).rglob("*.py")
        for line, name in imports(path)
        if name.split(".")[0] in banned
    ]
    assert found == []


def test_oracles_are_independent_of_dsfc(root: Path) -> None:
    found = [
        f"{path.name}:{line} {name}"
        for path in (root / "tests" / "oracles").glob("*.py")
        if not path.name.startswith(("test_", "conftest"))
        for line, name in imports(path)
        if name.split(".")[0] not in ORACLES_MAY_IMPORT
    ]
    assert found == []
