"""Tests of benchmarks spoil kernels as those of the Triton target do."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "backends" / "triton"))
