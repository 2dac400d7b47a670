"""Systems of the labelled pairs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dsfc.api.pipeline import read
from dsfc.system.ir import System

Load = Callable[[str, str], System]


@pytest.fixture(scope="session")
def system() -> Load:
    """The system of a mixer in pairs/<file>.dsf."""
    known: dict[tuple[str, str], System] = {}

    def load(file: str, mixer: str) -> System:
        if (file, mixer) not in known:
            text = read(Path(__file__).parent / "pairs" / f"{file}.dsf")
            known[file, mixer] = text.compilation(mixer).system
        return known[file, mixer]

    return load
