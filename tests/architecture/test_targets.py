"""The plan names no target: what a backend prints, launches or costs is the backend's own."""

from __future__ import annotations

import re
from pathlib import Path

TARGET = re.compile(r"\b(?:torch|triton|cuda)\b|\btl\.", re.IGNORECASE)


def test_the_plan_and_the_fused_plan_name_no_target(root: Path) -> None:
    files = [p for stage in ("plan", "fused") for p in (root / "dsfc" / stage).rglob("*.py")]
    assert len(files) > 20
    assert {p.name for p in files if TARGET.search(p.read_text(encoding="utf-8"))} == set()
