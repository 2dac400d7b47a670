"""Makes the specs of this folder importable, and builds modules from texts."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

import dsfc
from dsfc.api.pipeline import Compilation
from dsfc.emit.backend import load_backend
from dsfc.emit.names import identifier

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[2] / "specs"))


@dataclass(frozen=True)
class Built:
    """A mixer and its module.

    Attributes:
        spec: its way through the stages.
        module: the imported module.
        text: what was emitted.
    """

    spec: Compilation
    module: ModuleType
    text: str

    def ident(self, name: str) -> str:
        """Returns what a name of the spec is called in the module."""
        taken = {self.module.__all__[0], self.spec.plan.name}
        return identifier(name, load_backend("torch").reserved | taken)


@pytest.fixture(scope="session")
def load(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Compilation]:
    """Loads a mixer of a name and a body."""
    folder = tmp_path_factory.mktemp("specs")

    def make(name: str, body: str) -> Compilation:
        path = folder / f"{name}.dsf"
        path.write_text(f"mixer {name} {{\n{body}\n}}\n", encoding="utf-8")
        return dsfc.load(path)

    return make


@pytest.fixture(scope="session")
def build(
    load: Callable[[str, str], Compilation], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str, str | None], Built]:
    """Compiles a mixer, once; without a body, a shipped one."""
    folder = tmp_path_factory.mktemp("modules")

    @cache
    def make(name: str, body: str | None = None) -> Built:
        spec = dsfc.load(name) if body is None else load(name, body)
        path = folder / f"{name}_.py"
        path.write_text(spec.module().text, encoding="utf-8")
        return Built(spec, dsfc.import_module(path), path.read_text(encoding="utf-8"))

    return make
