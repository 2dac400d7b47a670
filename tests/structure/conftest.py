"""How the tests of this folder get a System: from a shipped spec, or from a text."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from dsfc.derive.derive import derive
from dsfc.mixer import Library, resolve
from dsfc.source import Source
from dsfc.syntax.parse import parse
from dsfc.syntax.read import read_source
from dsfc.system.ir import System

SPECS = Path(__file__).parents[2] / "specs"


@pytest.fixture(scope="session")
def derived() -> Callable[[str], System]:
    """Lowers a shipped spec by its name, once."""
    library = Library(SPECS)

    @cache
    def make(name: str) -> System:
        return derive(resolve(parse(read_source(SPECS / f"{name}.dsf")), name, library))

    return make


@pytest.fixture(scope="session")
def lowered() -> Callable[[str], System]:
    """Lowers a text with one mixer."""

    def make(text: str) -> System:
        return derive(resolve(parse(Source("<text>", text)), None, None))

    return make
