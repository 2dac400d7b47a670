"""Removing any one check of the checker makes a test fail; see `removal.py` for what a check is."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
IMPLIED: dict[str, str] = {}
"""Checks without which everything is refused that was, and why they are there."""


@pytest.mark.full
def test_no_check_can_be_removed() -> None:
    command = [sys.executable, "-P", str(HERE / "removal.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    kinds = ("unreached", "survivors", "endless", "broken")
    left = {text: kind for kind in kinds for text in found[kind]}
    assert found["sites"] >= 400 and left.keys() == IMPLIED.keys(), left
