"""Makes the mixers of other folders importable: the unusual ones, and those of the specs."""

from __future__ import annotations

import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS / folder) for folder in ("backends/torch", "specs")]
