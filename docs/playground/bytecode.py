"""Asks the playground what a reader asks first, and packs the bytecode of what is then imported.

`compile.mjs` runs it in Pyodide.
"""

from __future__ import annotations

import json
import py_compile
import site
import sys
import zipfile
from pathlib import Path

FIRST = ("gla", "deltanet")
"""Specs that are asked about: with a diagonal transition, and with another."""


def specs() -> str:
    """Returns the shipped specs as JSON."""
    return json.dumps(_ask("gallery"), ensure_ascii=False)


def write(archive: str) -> None:
    """Writes the bytecode of all modules that the questions import.

    Args:
        archive: the zip file to write; its folders are those of the packages.
    """
    texts = {s["name"]: s["text"] for s in _ask("gallery")["specs"]}
    for name in FIRST:
        for asked in ("system", "module", "spectra", "check"):
            _ask(asked, text=texts[name])
    _ask("equiv", text=texts["gla"], other="gla", conditions=False)
    packages = Path(site.getsitepackages()[0])
    kind = py_compile.PycInvalidationMode.UNCHECKED_HASH
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as pack:
        for file in sorted(_imported(packages)):
            compiled = py_compile.compile(str(file), doraise=True, invalidation_mode=kind)
            pack.write(compiled, Path(compiled).relative_to(packages))


def _ask(name: str, **arguments: object) -> dict[str, object]:
    import playground

    answer = json.loads(playground.answer(json.dumps({"ask": name, **arguments})))
    if "fault" in answer:
        raise RuntimeError(answer["fault"])
    return answer["value"]


def _imported(packages: Path) -> set[Path]:
    """The files in pure Python of the modules that have been imported."""
    names = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    files = {Path(name) for name in names if name and name.endswith(".py")}
    return {f for f in files if f.is_relative_to(packages)}
