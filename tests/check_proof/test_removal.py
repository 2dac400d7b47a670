"""Removing any one refusal of the checker's rules makes a test fail.

This is about the modules that refuse claims, rows, points and systems. Those that write systems out
(`symbols`, `entries`, `side`, `cutoff`, ...) raise where a construct has no rule.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
MODULES = ("invariant", "markov", "recurrence", "witness", "comparable", "closed", "schema",
           "conditional", "conditions")  # fmt: skip
TESTS = ("test_reasons", "test_markov", "test_recurrence", "test_closed", "test_schema",
         "test_conditional")  # fmt: skip
WITHOUT_A_TEST = {
    "a condition is read nowhere at the point where all hold",
    "a value is made of a number of the claim's own",
    "a value is a function of what has a value",
    "the value of {c.solved} may not exist",
    "a state stands in a denominator",
    "conditions make the pivot of a row 0",
    "the pivot of a row holds what a condition gives a value",
    "the matrix `{t.name}` has a fixed value",
}
"""Refusals that no test reaches yet: no claim is known that passes all other checks before them."""


@pytest.mark.full
def test_no_refusal_can_be_removed() -> None:
    files = [str(HERE / f"{name}.py") for name in TESTS]
    command = [sys.executable, "-P", HERE / "removal.py", "--of", *files, "--"]
    done = subprocess.run(
        [*command, *(f"{m}:" for m in MODULES)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["sites"] >= 90
    assert found["survivors"] == [] and found["endless"] == []
    left = [t for t in found["unreached"] if not any(w in t for w in WITHOUT_A_TEST)]
    assert left == [] and len(found["unreached"]) <= 9
