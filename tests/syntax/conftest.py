"""What time is measured in, where it is."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from dsfc.source import Source
from dsfc.syntax.parse import parse

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "campaigns"))


@pytest.fixture(scope="session")
def ordinary() -> float:
    """Processor time in seconds of a text without mistakes that is nearly as long as may be."""
    text = "mixer m {\n" + "  state x : n = W (a + 2) · b\n" * 1300 + "}\n"
    start = time.process_time()
    parse(Source("long.dsf", text))
    return time.process_time() - start
