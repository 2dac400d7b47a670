"""Imports parts of the examples, which are programs and not installed."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def example(root: Path) -> Iterator[Callable[[str], ModuleType]]:
    """Imports a module under `examples/` by its dotted name."""
    folder = str(root / "examples")
    sys.path.insert(0, folder)
    yield importlib.import_module
    sys.path.remove(folder)
