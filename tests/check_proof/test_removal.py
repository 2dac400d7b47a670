"""Removing any one refusal of the checker's rules makes a test fail.

This is about the modules that refuse documents, claims, rows, points and systems. Those that write
systems out (`symbols`, `entries`, `side`, `cutoff`, ...) raise where a construct has no rule, and
`Obstacle` and `NotDefined` say elsewhere that there is none.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
MODULES = (
    "check", "claim", "closed", "comparable", "conditional", "conditions", "constant_word",
    "invariant", "laws", "markov", "point", "polynomial", "recurrence", "same", "schema",
    "statement", "witness", "words",
)  # fmt: skip
TESTS = ("check", "closed", "conditional", "constant_word", "forged", "laws", "markov",
         "polynomial", "reasons", "recurrence", "same", "schema", "words")  # fmt: skip
NO_RULE = ("raise Obstacle(", "raise NotDefined(")


@pytest.mark.full
def test_no_refusal_can_be_removed() -> None:
    files = [str(HERE / f"test_{name}.py") for name in TESTS]
    command = [sys.executable, "-P", HERE / "removal.py", "--of", *files, "--"]
    done = subprocess.run(
        [*command, *(f"{m}:" for m in MODULES)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    left = {
        kind: [t for t in found[kind] if not any(n in t for n in NO_RULE)]
        for kind in ("unreached", "survivors", "endless", "broken")
    }
    assert found["sites"] >= 150 and not any(left.values()), left
