"""Holds emitted modules against their definitions: finds a module's spec and runs the checks."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from dsfc.diagnostics.catalogue import FileProblem
from dsfc.diagnostics.report import DiagnosticError
from dsfc.emit.module import digest, origin
from dsfc.locate import SUFFIX
from dsfc.pipeline import Compilation, compile_spec, load
from dsfc.source import Source
from dsfc.validate.report import Report
from dsfc.validate.run import verify as run


def verify(
    target: str | os.PathLike[str] | ModuleType,
    spec: str | os.PathLike[str] | None = None,
    mixer: str | None = None,
    quick: bool = True,
    progress: Callable[[str], None] | None = None,
) -> Report:
    """Runs an emitted module against the definition of its mixer, and returns what was found.

    Args:
        target: the emitted file or the imported module; or a spec, which is compiled for this.
        spec: the spec of a module; by default the one that the module names, if it is still the
            one that the module was compiled from.
        mixer: which mixer of the spec.
        quick: small sizes and few lengths; otherwise all of them.
        progress: called with the name of each check before it runs.

    Raises:
        DiagnosticError: the spec cannot be compiled, is not found, or this is no emitted module.
        ImportError: torch is missing.
    """
    file = Path(str(target.__file__) if isinstance(target, ModuleType) else target)
    if file.suffix == ".py":
        known = compiled_from(file, mixer) if spec is None else load(spec, mixer)
        return run(file, known.plan, quick=quick, progress=progress)
    with tempfile.TemporaryDirectory(prefix="dsfc-") as folder:
        module = compile_spec(file, out=folder, mixer=mixer)
        return run(module, load(file, mixer).plan, quick=quick, progress=progress)


def compiled_from(module: str | os.PathLike[str], mixer: str | None = None) -> Compilation:
    """Returns the compilation that an emitted module came from, to hold the module against.

    The spec that the module names is looked for beside the module, in the current folder and among
    the shipped specs; the one whose plan has the sum that stands in the module is taken.

    Args:
        module: the `.py` file; whether it was edited since makes no difference.
        mixer: which mixer of the spec.

    Raises:
        DiagnosticError: E-FILE, where it is not an emitted module or its spec is not found.
    """
    file = Path(module)
    nowhere = Source(str(module), "").span()
    try:
        said = origin(file.read_bytes())
    except OSError as e:
        problem = e.strerror or str(e)
        raise DiagnosticError((FileProblem(nowhere, path=str(module), problem=problem),)) from e
    if said is None:
        problem = "it is not a module that dsfc wrote"
        raise DiagnosticError((FileProblem(nowhere, path=str(module), problem=problem),))
    shipped = said.source.removesuffix(SUFFIX)
    for candidate in (file.parent / said.source, Path(said.source), shipped):
        try:
            found = load(candidate, mixer)
            if digest(found.plan) == said.plan:
                return found
        except DiagnosticError:
            continue
    problem = f"the spec it was compiled from ({said.source}) is not found; name it"
    raise DiagnosticError((FileProblem(nowhere, path=str(module), problem=problem),))
