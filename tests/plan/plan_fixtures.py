"""Fixtures that give a plan."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

import dsfc
from dsfc.api.pipeline import Compilation
from dsfc.plan.ir import Plan


@pytest.fixture(scope="session")
def shipped() -> Callable[[str], Compilation]:
    """Loads a shipped spec, once."""
    return cache(dsfc.load)


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
def plan_of(shipped: Callable[[str], Compilation]) -> Callable[[str], Plan]:
    """Plans a shipped spec."""
    return lambda name: shipped(name).plan
