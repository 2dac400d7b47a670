"""What was measured, on what, with which versions: `results.json`."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import itertools
import json
import os
import platform
import re
import typing
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import torch

S = TypeVar("S")
Json = dict[str, "Json"] | list["Json"] | str | float | bool | None


def write(path: Path, results: Sequence[Any], seconds: float, workers: int) -> Path:
    """Writes the record of a comparison.

    Args:
        path: the file; its folder is made.
        results: dataclasses.
        seconds: wall-clock time of all of it.
        workers: processes it was trained in.
    """
    document = {
        "machine": machine() | {"workers": workers},
        "seconds": seconds,
        "results": [dataclasses.asdict(result) for result in results],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_lines(document) + "\n")
    return path


def read(path: Path, kind: type[S]) -> tuple[list[S], float]:
    """Returns the results of a record, dataclasses of this kind, and the seconds of all of it."""
    document = json.loads(path.read_text())
    return [_restore(kind, result) for result in document["results"]], document["seconds"]


def machine() -> dict[str, str | int]:
    """What the numbers were measured on."""
    return {
        "system": platform.system(),
        "processor": _processor(),
        "cores": cores(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "dsfc": importlib.metadata.version("dsfc"),
    }


def cores() -> int:
    """Cores this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _processor() -> str:
    """The processor's name, where the system tells."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _restore(kind: type, value: Json) -> object:
    """Undoes `dataclasses.asdict` and JSON for dataclasses of scalars, dataclasses and tuples."""
    if dataclasses.is_dataclass(kind):
        kinds = typing.get_type_hints(kind)
        return kind(**{name: _restore(kinds[name], part) for name, part in value.items()})
    if typing.get_origin(kind) is tuple:
        kinds = typing.get_args(kind)
        kinds = itertools.repeat(kinds[0]) if kinds[-1] is ... else kinds
        return tuple(_restore(part, x) for part, x in zip(kinds, value, strict=False))
    return value


def _lines(document: dict[str, Any]) -> str:
    """JSON, indented, but a list of numbers is one line."""
    text = json.dumps(document, indent=1)
    numbers = re.compile(r"\[[-+.,\s\deE]*\]")
    return numbers.sub(lambda found: re.sub(r"\s+", " ", found[0]), text)
