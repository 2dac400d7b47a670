"""Certificates to check and to spoil."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dsfc.api.pipeline import read
from dsfc.prover.equivalent import equivalent
from dsfc.prover.subsumes import subsumes
from dsfc.prover.verdict import Conditionally, Instance
from dsfc.system.ir import System
from dsfc.trusted.claim import Certificate

sys.path.insert(0, str(Path(__file__).parent))  # the second checker, which imports nothing of dsfc

PAIRS = Path(__file__).parent.parent / "prover" / "pairs"


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


@pytest.fixture(scope="session")
def conditional(system: Callable) -> Callable[[str, str, str], Certificate]:
    """What the prover gives for two that are equal under conditions."""
    known: dict[tuple[str, str, str], Certificate] = {}

    def make(file: str, a: str, b: str) -> Certificate:
        if (file, a, b) not in known:
            verdict = equivalent(system(file, a), system(file, b), conditions=True)
            assert isinstance(verdict, Conditionally)
            known[file, a, b] = verdict.certificate
        return known[file, a, b]

    return make


@pytest.fixture(scope="session")
def filled(system: Callable) -> Callable[[str, str], Certificate]:
    """That a mixer of the lattice is a case of a template."""

    def make(a: str, b: str) -> Certificate:
        found = subsumes(system("lattice", a), system("lattice", b), conditions=True)
        assert isinstance(found, Instance)
        return found.certificate

    return make
