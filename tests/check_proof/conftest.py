"""Certificates to check and to spoil."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dsfc.check_proof.claim import Certificate
from dsfc.pipeline import read
from dsfc.proof.equivalent import equivalent
from dsfc.system.ir import System

PAIRS = Path(__file__).parent.parent / "proof" / "pairs"


@pytest.fixture(scope="session")
def system() -> Callable[[str, str], System]:
    """The system of a mixer of the labelled pairs."""
    return lambda file, mixer: read(PAIRS / f"{file}.dsf").compilation(mixer).system


@pytest.fixture(scope="session")
def certificate(system: Callable) -> Callable[[str, str, str], Certificate]:
    """What the prover gives for two of them."""
    known: dict[tuple[str, str, str], Certificate] = {}

    def make(file: str, a: str, b: str) -> Certificate:
        if (file, a, b) not in known:
            known[file, a, b] = equivalent(system(file, a), system(file, b)).certificate
        return known[file, a, b]

    return make
