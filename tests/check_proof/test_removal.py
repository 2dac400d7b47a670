"""Removing any one refusal of the checker makes a test of the checker fail."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.full
def test_no_refusal_can_be_removed() -> None:
    script = Path(__file__).parent / "removal.py"
    done = subprocess.run([sys.executable, "-P", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["sites"] >= 100
    assert found["unreached"] == [] and found["survivors"] == [], done.stdout
    # A bound that keeps work finite: without it a test does not end.
    assert len(found["endless"]) <= 3, done.stdout
