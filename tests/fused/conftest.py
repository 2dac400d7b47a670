"""How the tests of this folder get a plan: as those of plans do."""

from __future__ import annotations

import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS / folder) for folder in ("plan", "backends/torch", "campaigns")]

from plan_fixtures import load, plan_of, shipped  # noqa: E402, F401
