"""Fixtures: the small Systems that tests of its matrices share."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "system"))
from small_systems import MAKERS

del sys.path[0]


@pytest.fixture(scope="session")
def systems():
    """Name → System."""
    return {name: make() for name, make in MAKERS.items()}
