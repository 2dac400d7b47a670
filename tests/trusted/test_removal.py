"""Removing any one check of the kernel makes a test fail; see `removal.py` for what a check is.

This is about every module of `dsfc/trusted` and the command: those that refuse documents,
claims, rows, points and systems, those that count sizes, and those that write systems out, which
refuse what they have no rule for. A system without a rule is refused by its reason, so that it is
not taken for one with a rule.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

REMOVAL = Path(__file__).parent / "removal.py"


@pytest.mark.full
def test_no_check_can_be_removed() -> None:
    done = subprocess.run(
        [sys.executable, "-P", str(REMOVAL)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    left = {t: k for k in ("unreached", "survivors", "endless", "broken") for t in found[k]}
    assert found["sites"] >= 500 and not left, left
