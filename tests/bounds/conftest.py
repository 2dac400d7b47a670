"""Questions about the pairs of `pairs.dsf` and of shipped mixers."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from dsfc.api.bound import domain_of
from dsfc.api.pipeline import load, read
from dsfc.bounds.decide import question_of
from dsfc.bounds.domain import Domain
from dsfc.bounds.pair import Question
from dsfc.system.ir import System

Ask = Callable[..., Question]
PAIRS = Path(__file__).parent / "pairs.dsf"


@pytest.fixture(scope="session")
def system() -> Callable[[str], System]:
    """The system of a mixer of `pairs.dsf`, or of a shipped one."""
    text, known = read(PAIRS), dict[str, System]()

    def get(name: str) -> System:
        if name not in known:
            own = name in text.mixers
            known[name] = (text.compilation(name) if own else load(name)).system
        return known[name]

    return get


@pytest.fixture(scope="session")
def ask(system: Callable[[str], System]) -> Ask:
    """A question about two of them, on a domain that is given as text."""

    def asked(a: str, b: str, domain: str = "", within: str = "1e-6", **sizes: int) -> Question:
        first, second = system(a), system(b)
        where = domain_of(domain, first, second) if domain else Domain()
        return question_of(first, second, Fraction(within), where, (), sizes)

    return asked
