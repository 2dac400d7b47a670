"""Asks the playground what a reader asks first, and packs the bytecode of what is then imported.

`compile.mjs` runs it in Pyodide.
"""

from __future__ import annotations

import json
import py_compile
import shutil
import site
import sys
import tempfile
import zipfile
from pathlib import Path

FIRST = ("gla", "deltanet")
"""Specs that are asked about: with a diagonal transition, and with another."""


def specs() -> str:
    """Returns the shipped specs as JSON."""
    return json.dumps(_ask("gallery"), ensure_ascii=False)


def write(packed: str, library: str) -> None:
    """Writes the bytecode of all modules that the questions import.

    Args:
        packed: the zip file to write for packages; its folders are theirs.
        library: the zip file to write in place of that of the standard library, which has sources
            alone.
    """
    texts = {s["name"]: s["text"] for s in _ask("gallery")["specs"]}
    for name in FIRST:
        for asked in ("system", "module", "spectra", "check"):
            _ask(asked, text=texts[name])
    _ask("equiv", text=texts["gla"], other="gla", conditions=False)

    packages, standard = Path(site.getsitepackages()[0]), Path(json.__file__).parents[1]
    files = sorted(_imported())
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as pack:
        for file in (f for f in files if f.is_relative_to(packages)):
            compiled = _compiled(file, file)
            pack.write(compiled, Path(compiled).relative_to(packages))
    shutil.copy(standard, library)
    with zipfile.ZipFile(library, "a", zipfile.ZIP_DEFLATED) as pack:
        for file in (f for f in files if f.is_relative_to(standard)):
            name = file.relative_to(standard)
            source = Path(tempfile.mkdtemp(), file.name)
            source.write_bytes(pack.read(str(name)))
            pack.write(_compiled(source, file), name.with_suffix(".pyc"))


def _compiled(source: Path, shown: Path) -> str:
    """Compiles a file, which is not compared with its source again; returns the path."""
    kind = py_compile.PycInvalidationMode.UNCHECKED_HASH
    return py_compile.compile(str(source), dfile=str(shown), doraise=True, invalidation_mode=kind)


def _ask(name: str, **arguments: object) -> dict[str, object]:
    import playground

    answer = json.loads(playground.answer(json.dumps({"ask": name, **arguments})))
    if "fault" in answer:
        raise RuntimeError(answer["fault"])
    return answer["value"]


def _imported() -> set[Path]:
    """The files in pure Python of the modules that have been imported."""
    names = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    return {Path(name) for name in names if name and name.endswith(".py")}
