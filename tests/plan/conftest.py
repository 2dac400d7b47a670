"""How the tests of this folder get a plan."""

from __future__ import annotations

import sys
from pathlib import Path

# The unusual mixers of the backend's tests and the small ones of derivation are planned here too.
TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS / folder) for folder in ("plan", "backends/torch", "derive")]

from plan_fixtures import load, plan_of, shipped  # noqa: E402, F401
