"""Removing any one check of the checker makes a test fail; see `removal.py` for what a check is.

This is about the modules that refuse documents, claims, rows, points and systems, and those that
count sizes. Those that write systems out (`symbols`, `entries`, `side`, `steady`, ...) are not
looked into whole: they raise where a construct has no rule, and `Obstacle` and `NotDefined` say
elsewhere that there is none.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

REMOVAL = Path(__file__).parent / "removal.py"
MODULES = (
    "check", "claim", "closed", "comparable", "conditional", "conditions", "constant_word",
    "cutoff", "family", "index_form", "index_values", "indices", "invariant", "laws", "markov",
    "one_step", "point", "polynomial", "recurrence", "same", "schema", "statement", "witness",
    "words",
)  # fmt: skip
NO_RULE = ("raise Obstacle(", "raise NotDefined(")


@pytest.mark.full
def test_no_check_can_be_removed() -> None:
    command = [sys.executable, "-P", str(REMOVAL), "--", *(f"{m}." for m in MODULES)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    kinds = ("unreached", "survivors", "endless", "broken")
    left = {t: k for k in kinds for t in found[k] if not any(n in t for n in NO_RULE)}
    assert found["sites"] >= 300 and not left, left
