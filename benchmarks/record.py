"""What is written down: one file per machine and setting, one record per row."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypedDict

from benchmarks.emitted import ROOT
from benchmarks.process import Allocator, Conditions

PACKAGES = ("dsfc", "torch", "numpy", "fla-core", "mambapy", "einops")

Seconds = dict[str, dict[str, list[float]]]
"""Of every run, by contender and work."""


class Circumstances(TypedDict):
    """When a row was measured, and with what."""

    date: str
    commit: str
    versions: dict[str, str]
    load: list[float]
    """Load average of the machine before and after; above the threads: others were at work."""


class Peak(TypedDict):
    """Memory of one run in a fresh process, in bytes."""

    peak: int
    """The median of some processes; glibc does not do the same in each."""
    peaks: list[int]
    unavoidable: int
    """Arguments, output, and the gradients of both where there are any."""
    chunk: int | None


class Verdict(TypedDict):
    """Whether a bar is reached."""

    bar: str
    quantity: str
    work: str
    target: float | None
    """Most that ours may take, in seconds or bytes; None for growth."""
    figure: float
    at_most: float
    low: float
    high: float
    """95 % of resampled figures lie from `low` to `high`; of memory, all."""
    reached: bool
    says: str


class RowRecord(TypedDict, total=False):
    """All that was measured of a row. With `skipped` there is nothing else but circumstances."""

    name: str
    structure: str
    spec: str
    formula: str
    sizes: dict[str, int]
    circumstances: Circumstances
    skipped: str
    sources: dict[str, str]
    tolerance: float
    errors: dict[str, dict[str, float]]
    failures: dict[str, str]
    seconds: Seconds
    disturbed: float
    """Share of the runs that waited for a core."""
    unquiet: list[str]
    """What had no quiet moment: its disturbed runs are kept, and its figures are worth nothing."""
    compiling: dict[str, dict[str, float]]
    memory: dict[str, dict[str, Peak]]
    growth_law: str
    growth_seconds: dict[str, dict[str, list[float]]]
    """Of every run of ours, by work and length."""
    growth_memory: dict[str, Peak]
    verdicts: list[Verdict]


class Document(TypedDict):
    """One file."""

    machine: dict[str, Any]
    conditions: dict[str, Any]
    rows: list[RowRecord]


def machine() -> dict[str, Any]:
    """What the numbers are measured on."""
    affinity = getattr(os, "sched_getaffinity", None)
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "processor": _processor(),
        "cores": len(affinity(0)) if affinity else os.cpu_count(),
        "memory_gib": round(pages / 2**30, 1),
        "system": platform.system(),
        "libc": " ".join(platform.libc_ver()).strip(),
        "python": platform.python_version(),
    }


def circumstances(load_before: float) -> Circumstances:
    """What goes with a row, once it is measured."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": _commit(),
        "versions": {name: found for name in PACKAGES if (found := _version(name))},
        "load": [round(load_before, 2), round(load(), 2)],
    }


def load() -> float:
    """Processes that are running or want to, averaged over a minute."""
    return os.getloadavg()[0]


def path(folder: Path, machine: dict[str, Any], conditions: Conditions) -> Path:
    """The file of a machine and a setting."""
    processor = re.sub(r"[^a-z0-9]+", "-", str(machine["processor"]).lower()).strip("-")
    special = conditions.allocator is not Allocator.SYSTEM
    suffix = f"-{conditions.allocator.value}" if special else ""
    return folder / f"{processor}-{conditions.threads}-threads{suffix}.json"


def read(file: Path) -> Document | None:
    """Returns what is in a file, None where there is none."""
    if not file.exists():
        return None
    document: Document = json.loads(file.read_text(encoding="utf-8"))
    return document


def merge(old: Document | None, new: Document, order: Iterable[str]) -> Document:
    """Returns the new rows in place of the old ones of their names, the others as they were.

    Args:
        old: what the file held.
        new: of the same machine and setting.
        order: names of all rows.
    """
    found = {row["name"]: row for row in (old["rows"] if old else [])}
    found |= {row["name"]: row for row in new["rows"]}
    return {**new, "rows": [found[name] for name in order if name in found]}


def write(file: Path, document: Mapping[str, object]) -> None:
    """Writes a document, whole or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_suffix(".partial")
    draft.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    draft.replace(file)


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _commit() -> str:
    """The commit of the checkout, with a plus where files differ from it."""
    try:
        head, changed = (
            _git("rev-parse", "--short=12", "HEAD"),
            _git("status", "--porcelain", "-uno"),
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return head + ("+" if changed else "")


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _processor() -> str:
    """The processor's name, where the system tells."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
