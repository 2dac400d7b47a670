"""The reader of Lean text, and certificates to write as such."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from dsfc.api.pipeline import read
from dsfc.prover.equivalent import equivalent
from dsfc.trusted.claim import Certificate

sys.path.insert(0, str(Path(__file__).parent))

PAIRS = Path(__file__).parent.parent / "prover" / "pairs"


@pytest.fixture(scope="session")
def certificate() -> Callable[[str, str, str], Certificate]:
    """What the prover gives for two mixers of the labelled pairs."""

    @cache
    def make(file: str, a: str, b: str) -> Certificate:
        spec = read(PAIRS / f"{file}.dsf")
        return equivalent(*(spec.compilation(m).system for m in (a, b))).certificate

    return make
