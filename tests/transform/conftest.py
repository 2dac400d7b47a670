"""Makes the helpers of this folder importable, and derives the shipped specs.

`hand_built` has systems written by hand, `torch_system` runs a System in torch.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from dsfc.derive.derive import derive
from dsfc.mixer import Library, resolve
from dsfc.syntax.parse import parse
from dsfc.syntax.read import read_source
from dsfc.system.ir import System

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "campaigns"))
SPECS = Path(__file__).parents[2] / "specs"


@pytest.fixture(scope="session")
def derived() -> Callable[[str], System]:
    """Lowers a shipped spec by its name, once."""
    library = Library(SPECS)

    @cache
    def make(name: str) -> System:
        return derive(resolve(parse(read_source(SPECS / f"{name}.dsf")), name, library))

    return make
