"""The plan names no target: what a backend prints, launches or costs is the backend's own."""

from __future__ import annotations

import re
from pathlib import Path

TARGET = re.compile(r"\b(?:torch|triton|cuda)\b|\btl\.", re.IGNORECASE)
COUNTED_FOR_A_TARGET = {"cost.py"}
"""Files of the plan that count a target's operators; each leaves this set once a backend has it."""


def test_the_plan_names_no_target(root: Path) -> None:
    files = (root / "dsfc" / "plan").rglob("*.py")
    naming = {p.name for p in files if TARGET.search(p.read_text(encoding="utf-8"))}
    assert naming == COUNTED_FOR_A_TARGET
