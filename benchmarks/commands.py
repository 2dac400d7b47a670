"""How long commands start, and compilers work: `python -m benchmarks.commands`.

Commands of dsfc run as processes of their own, in turns with `import sympy` and `import torch`,
which none of them is expected to beat by much. Then every shipped mixer that has kernels in C is
called once with an empty folder of compiled kernels, and once more: what the compiler works for
each kernel is counted in its own process. Times are of processors, so that others on the machine
disturb them little. What was found is written to `results/commands.json`. POSIX only.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import dsfc
from dsfc.api.locate import shipped_names
from dsfc.diagnostics.report import DiagnosticError
from dsfc.emit.backend import load_backend

ROUNDS = 9
FILE = Path(__file__).parent / "results" / "commands.json"
SPEC = "retnet"
CALL = """
import sys, torch, dsfc
from dsfc.validate.surface import surface
found = surface(dsfc.import_module(sys.argv[1]))
sample = found.sample(70, dtype=torch.float32, state=False)
sample.layer(**sample.inputs).sum().backward()
"""
"""Calls a layer forwards and backwards, of few tokens: the time is that of getting ready."""

COMPILER = """#!/bin/sh
"{compiler}" "$@" || exit
case "$*" in *kernel.c*) times >> "{log}" ;; esac
"""
"""A compiler that writes down what it worked: a shell tells it of itself and of its children."""


def commands(folder: Path) -> dict[str, list[str]]:
    """Returns what is started, by name.

    Args:
        folder: where modules are written.
    """
    own = [sys.executable, "-m", "dsfc"]
    return {
        "import sympy": [sys.executable, "-c", "import sympy"],
        "import torch": [sys.executable, "-c", "import torch"],
        "dsfc --help": [*own, "--help"],
        "dsfc check": [*own, "check", SPEC],
        "dsfc compile": [*own, "compile", SPEC, "--force", "--out", str(folder)],
        "dsfc compile --backend c": [
            *(*own, "compile", SPEC, "--backend", "c"),
            *("--force", "--out", str(folder / "in_c.py")),
        ],
    }


def processor_seconds(command: list[str], **variables: str) -> float:
    """Runs a command, and returns what its process worked.

    Raises:
        subprocess.CalledProcessError: it failed.
    """
    before = os.times()
    environment = {**os.environ, **variables}
    subprocess.run(command, check=True, capture_output=True, env=environment)
    after = os.times()
    return sum(after[2:4]) - sum(before[2:4])


def starts(rounds: int = ROUNDS) -> dict[str, float]:
    """Returns the processor seconds of each command: medians of some rounds, one after another."""
    with TemporaryDirectory() as made:
        asked = commands(Path(made))
        runs: dict[str, list[float]] = {name: [] for name in asked}
        for _ in range(rounds):
            for name, command in asked.items():
                runs[name].append(processor_seconds(command))
    return {name: round(median(seconds), 3) for name, seconds in runs.items()}


def kernels(specs: tuple[str, ...]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields for each mixer what the compiler worked for its kernels, and how often it ran again.

    Args:
        specs: names of shipped mixers with kernels in C.
    """
    compiler = next(path for name in ("gcc", "clang", "cc") if (path := shutil.which(name)))
    for spec in specs:
        with TemporaryDirectory() as made:
            folder = Path(made)
            log, wrapper, module = folder / "log", folder / "compiler", folder / f"{spec}.py"
            wrapper.write_text(COMPILER.format(compiler=compiler, log=log), encoding="utf-8")
            wrapper.chmod(0o700)
            module.write_text(dsfc.load(spec).module("c").text, encoding="utf-8")
            call = [sys.executable, "-c", CALL, str(module)]
            variables = {"DSFC_CC": str(wrapper), "XDG_CACHE_HOME": made}
            processor_seconds(call, **variables)
            first = worked(log.read_text(encoding="utf-8"))
            processor_seconds(call, **variables)
            again = len(worked(log.read_text(encoding="utf-8"))) - len(first)
            yield spec, {"seconds": first, "compiled again": again}


def worked(log: str) -> list[float]:
    """Returns the seconds that a shell's `times` tells of its children, one entry a call."""
    children = log.splitlines()[1::2]
    return [
        round(sum(60 * int(m) + float(s) for m, s in re.findall(r"(\d+)m([\d.]+)s", line)), 2)
        for line in children
    ]


def with_kernels() -> tuple[str, ...]:
    """Returns the shipped mixers that have kernels in C, sorted."""
    c, found = load_backend("c"), []
    for name in shipped_names():
        with contextlib.suppress(DiagnosticError):  # a part of a mixer, or one without a System
            if c.kernels(dsfc.load(name).fused(c.name)):
                found.append(name)
    return tuple(found)


def main() -> None:
    """Measures all, writes it and prints it."""
    report: dict[str, Any] = {
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "versions": {name: version(name) for name in ("sympy", "torch")},
        "commands": starts(),
    }
    for name, seconds in report["commands"].items():
        print(f"{name}: {seconds:.2f} s")
    report["kernels"] = {}
    for spec, found in kernels(with_kernels()):
        report["kernels"][spec] = found
        print(f"{spec}: {found['seconds']} s, compiled again {found['compiled again']} times")
    FILE.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
