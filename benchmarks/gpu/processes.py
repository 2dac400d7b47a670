"""Processes that compile and check one mixer each: what stops one of them stops no other."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

_PAUSE = 0.05
"""Seconds between looks at what runs."""


def documents(
    names: Sequence[str],
    arguments: Sequence[str],
    folder: Path,
    jobs: int,
    left: Callable[[], float],
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the name of each mixer and the document that its process wrote, as they end.

    Args:
        names: the mixers.
        arguments: of `python -m benchmarks.gpu`, besides the mixer and the folder.
        folder: where the processes write, each in a folder of its own.
        jobs: how many run at once.
        left: seconds until those that still run are stopped.
    """
    waiting, running, stopped = list(names), dict[str, subprocess.Popen[str]](), set[str]()
    while waiting or running:
        while waiting and len(running) < jobs and left() > 0:
            name = waiting.pop(0)
            running[name] = _started(name, arguments, folder / name)
        if left() <= 0:
            for name, process in running.items():
                process.kill()
                stopped.add(name)
            for name in waiting:
                yield name, {"not run": [name]}
            waiting = []
        for name in [n for n, p in running.items() if p.poll() is not None]:
            process = running.pop(name)
            yield name, _found(name, process, folder / name, name in stopped)
        time.sleep(_PAUSE)


def _started(name: str, arguments: Sequence[str], folder: Path) -> subprocess.Popen[str]:
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.json"):
        old.unlink()
    command = [sys.executable, "-m", "benchmarks.gpu", "--spec", name, "--out", str(folder)]
    with (folder / "log").open("w", encoding="utf-8") as log:
        return subprocess.Popen(
            [*command, *arguments], stdout=log, stderr=subprocess.STDOUT, text=True
        )


def _found(
    name: str, process: subprocess.Popen[str], folder: Path, stopped: bool
) -> dict[str, Any]:
    """Returns the document of a process that ended; one that broke or was stopped wrote a part."""
    files = list(folder.glob("*.json"))
    found: dict[str, Any] = {"not run": []}
    if files:
        found = json.loads(files[0].read_text(encoding="utf-8"))
    if stopped:
        found["not run"] = [*found["not run"], f"{name}, the rest"]
        return found
    records = [*found.get("compile", []), *found.get("correct", [])]
    wrong = any("wrong" in r or "failed" in r for r in records)
    if process.returncode and not wrong:
        said = (folder / "log").read_text(encoding="utf-8")[-1500:]
        failed = {"title": f"{name}, its process", "failed": f"exit {process.returncode}: {said}"}
        found["correct"] = [*found.get("correct", []), failed]
    return found
