"""How long `dsfc verify --fast` takes, from start to end: python -m benchmarks.verify [SPEC ...].

Each shipped spec that compiles is verified in a process of its own, one after the other. `seconds`
are those of the clock; on a machine where others are at work (see `load`) they hold what the
process waited for a core, and `processor_seconds` say what it worked, the start of Python and the
import of torch included. What was found is written to `benchmarks/results/verify.json`.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import dsfc
from dsfc.api.locate import shipped_names
from dsfc.diagnostics.report import DiagnosticError

FILE = Path(__file__).parent / "results" / "verify.json"


def compiled() -> list[str]:
    """Returns the names of the shipped specs that compile."""
    found = []
    for name in shipped_names():
        try:
            _ = dsfc.load(name).plan
        except DiagnosticError:
            continue
        found.append(name)
    return found


def measured(name: str) -> dict[str, Any]:
    """Returns what one run took and how many of its promises were kept."""
    words = ["verify", "--fast", name, "--format", "json"]
    code = "import sys\nfrom dsfc.cli import main\nsys.argv[0] = 'dsfc'\nmain()"
    began, before = time.perf_counter(), _worked()
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, *words], capture_output=True, text=True, check=False
    )
    seconds = time.perf_counter() - began
    rows = json.loads(done.stdout)["rows"]
    longest = max(rows, key=lambda row: row["seconds"])
    return {
        "seconds": round(seconds, 2),
        "processor_seconds": round(_worked() - before, 2),
        "kept": sum(row["outcome"] == "kept" for row in rows),
        "checks": len(rows),
        "longest": longest["name"],
        "load": round(os.getloadavg()[0], 1),
    }


def _worked() -> float:
    times = os.times()
    return times.children_user + times.children_system


def main(names: list[str]) -> None:
    """Measures the specs of some names, all if none is given; other rows of the file stay."""
    rows = json.loads(FILE.read_text(encoding="utf-8"))["specs"] if names else {}
    for name in names or compiled():
        rows[name] = measured(name)
        print(name, rows[name], flush=True)
        found = {
            "python": platform.python_version(),
            "torch": version("torch"),
            "cores": os.cpu_count(),
            "specs": {name: rows[name] for name in sorted(rows)},
        }
        FILE.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
