"""Emitted texts, as they are and damaged, imported under names and operators of their own."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import cache
from itertools import count
from pathlib import Path
from types import ModuleType

import pytest
import torch

import dsfc

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "campaigns"))
sys.path.insert(0, str(Path(__file__).parents[1] / "backends" / "torch"))
torch.set_num_threads(1)

_NUMBERS = count()


@pytest.fixture(scope="session")
def text(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """Returns the text of a module: of a shipped spec, or of a mixer of a name and a body."""
    folder = tmp_path_factory.mktemp("specs")

    @cache
    def made(name: str, body: str | None = None) -> str:
        if body is None:
            return dsfc.load(name).module().text
        path = folder / f"{name}.dsf"
        path.write_text(f"mixer {name} {{\n{body}\n}}\n", encoding="utf-8")
        return dsfc.load(path).module().text

    return made


@pytest.fixture
def imported(tmp_path: Path) -> Callable[[str], ModuleType]:
    """Imports a text. Its operators get a namespace of their own: PyTorch keeps the first ones."""

    def load(text: str) -> ModuleType:
        (namespace,) = re.findall(r"^NAMESPACE = ['\"](\w+)['\"]$", text, re.MULTILINE)
        number = next(_NUMBERS)
        path = tmp_path / f"text_{number}.py"
        path.write_text(text.replace(namespace, f"{namespace}_{number}"), encoding="utf-8")
        return dsfc.import_module(path)

    return load
