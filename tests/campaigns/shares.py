"""Shares of a campaign: runs whose figures add up, each with the source that it judged."""

from __future__ import annotations

import hashlib
import platform
from functools import cache
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]

Share = dict[str, Any]
"""Its first seed, how many seeds it ran in how many seconds, its source and versions, as JSON."""


def share(seed: int, count: int, seconds: float) -> Share:
    """Returns a share of this source.

    Args:
        seed: its first seed.
        count: how many seeds, one after another.
        seconds: how long it took.
    """
    return {
        "seed": seed,
        "count": count,
        "seconds": round(seconds),
        "source": source_hash(),
        "versions": {
            "dsfc": version("dsfc"),
            "torch": version("torch"),
            "python": platform.python_version(),
        },
    }


def joined(*runs: list[Share]) -> list[Share]:
    """Returns the shares of several runs by seed.

    Raises:
        ValueError: a seed is in two of them.
    """
    found = sorted((one for run in runs for one in run), key=lambda one: int(one["seed"]))
    for before, after in pairwise(found):
        if before["seed"] + before["count"] > after["seed"]:
            raise ValueError(f"seeds from {after['seed']} are in two shares")
    return found


@cache
def source_hash() -> str:
    """Returns a hash of all that an outcome depends on: compiler, specs, writers and judges."""
    folders = ("dsfc", "backends", "grammar", "specs")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*")]
    files = [path for path in files if path.suffix in (".py", ".j2", ".lark", ".dsf")]
    digest = hashlib.sha256()
    for path in sorted([*files, *(p for p in HERE.glob("*.py") if not p.name.startswith("test_"))]):
        digest.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]
