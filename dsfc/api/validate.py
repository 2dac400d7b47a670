"""Holds emitted modules to their promises: finds a module's spec, runs the checks on the module.

The checks judge a module by the reference it carries. A row of its own says whether that reference
is the one that its spec has, so an edit of the module cannot move the goal.
"""

from __future__ import annotations

import ast
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType

from dsfc import files
from dsfc.api.compile import compile_spec
from dsfc.api.imported import imported
from dsfc.api.locate import SUFFIX
from dsfc.api.pipeline import Compilation, load
from dsfc.diagnostics.file_error import file_error
from dsfc.diagnostics.report import DiagnosticError
from dsfc.emit.importing import import_module
from dsfc.emit.module import Option, Origin, digest, origin, write
from dsfc.layer_parts import LayerSignature
from dsfc.plan.heads import head_axis
from dsfc.python_text import parsed
from dsfc.validate.fla_layer import fla_layer
from dsfc.validate.report import Outcome, Report, Row
from dsfc.validate.run import Check, Progress, deterministic_torch
from dsfc.validate.run import validate as run_checks
from dsfc.validate.surface import SurfaceError, surface, unit_inputs
from dsfc.validate.whole_layer import Definition, whole_layer

PathText = str | os.PathLike[str]


def validate(
    target: PathText | ModuleType,
    spec: PathText | None = None,
    mixer: str | None = None,
    *,
    sizes: Mapping[str, int] | None = None,
    quick: bool = True,
    fast: bool = False,
    progress: Progress | None = None,
) -> Report:
    """Runs every check on an emitted module and returns one row per promise.

    Args:
        target: the emitted file or the imported module; or a spec, which is compiled for this.
        spec: the spec of a module; by default the one the module names, if it is at hand.
        mixer: which mixer of the spec.
        sizes: of the axes; by default small ones, all different.
        quick: leave out what compiles machine code and what takes thousands of steps.
        fast: leave out all but values and gradients: modes, cuts, steps, masks and packs.
        progress: called before each check with how many are done, how many there are and its name.

    Raises:
        DiagnosticError: the spec cannot be compiled, or this is no emitted module that runs.
        ImportError: torch is missing.
    """
    file = Path(str(target.__file__) if isinstance(target, ModuleType) else target)
    if file.suffix == ".py":
        row, known, said = _origin(file, spec, mixer)
        try:
            module = target if isinstance(target, ModuleType) else imported(file)
            report = run_checks(module, sizes=sizes, quick=quick, fast=fast, progress=progress,
                                unit=_unit(known), more=_of_layer(known, said))  # fmt: skip
        except SurfaceError as e:
            raise file_error(file, str(e)) from e
        return replace(report, rows=(row, *report.rows))
    with tempfile.TemporaryDirectory(prefix="dsfc-") as folder:
        module = import_module(compile_spec(file, out=folder, mixer=mixer))
        return run_checks(module, sizes=sizes, quick=quick, fast=fast, progress=progress,
                          unit=_unit(load(file, mixer)))  # fmt: skip


def _unit(known: Compilation | None) -> frozenset[str]:
    """Inputs that a spec declares in a range, as its module calls them."""
    if known is None:
        return frozenset()
    return frozenset(map(known.identifiers(), unit_inputs(known.system.inputs)))


def _of_layer(known: Compilation | None, said: Origin) -> tuple[Check, ...]:
    """The checks of the layers that a module has; none without one, or without its spec."""
    if known is None or not known.in_layer:
        return ()
    alone = replace(known, in_layer=False)
    with tempfile.TemporaryDirectory(prefix="dsfc-") as folder, deterministic_torch():
        path = Path(folder, f"{alone.name}_alone.py")
        write(alone.module(), path)
        plain = surface(import_module(path), unit=_unit(alone))
    axes = alone.plan.array(alone.plan.output).axes
    heads = tuple(at for at, axis in enumerate(axes) if axis.heads)
    definition = Definition(plain, heads)
    layer = Check("layer", partial(whole_layer, definition=definition), fast=True)
    if Option.FLA not in said.options:
        return (layer,)
    axis = head_axis(known.plan)
    called = None if axis is None else known.identifiers()(axis.name)
    of_fla = partial(fla_layer, definition=definition, heads=called)
    return layer, Check("fla", of_fla, fast=True)


def _origin(
    file: Path, spec: PathText | None, mixer: str | None
) -> tuple[Row, Compilation | None, Origin]:
    """The row that says whether the module's reference is the one of its spec, and this spec."""
    began = time.perf_counter()
    try:
        data = files.read(file)
    except OSError as e:
        raise file_error(file, e.strerror or str(e)) from e
    said = origin(data)
    if said is None:
        raise file_error(file, "it is not a module that dsfc wrote")
    known = _spec_of(file, said, mixer) if spec is None else _loaded(spec, mixer, said)
    kept, figure = _compared(data.decode(), said, known)
    outcome = Outcome.KEPT if kept else Outcome.BROKEN
    promise = "The reference is the definition in the spec"
    return Row("origin", promise, outcome, figure, time.perf_counter() - began), known, said


def _loaded(spec: PathText, mixer: str | None, said: Origin) -> Compilation:
    """The mixer of a spec as a module has it: in a layer, maps of its input are inputs."""
    known = load(spec, mixer)
    return known.core if Option.LAYER in said.options else known


def _spec_of(file: Path, said: Origin, mixer: str | None) -> Compilation | None:
    """The spec that a module names, beside it, in this folder or shipped, if its plan is as then.

    A spec that was changed since, or that another version of dsfc plans otherwise, is not it.
    """
    shipped = said.source.removesuffix(SUFFIX)
    for candidate in (file.parent / said.source, Path(said.source), shipped):
        try:
            compilation = _loaded(candidate, mixer, said)
            if digest(compilation.plan) == said.plan:
                return compilation
        except DiagnosticError:
            continue
    return None


def _compared(text: str, said: Origin, known: Compilation | None) -> tuple[bool, str]:
    """Whether a module keeps to its spec, and what was seen."""
    if known is None:
        if said.untouched:
            return True, f"as dsfc {said.version} wrote it; {said.source} is not at hand"
        return False, f"edited, and the {said.source} it came from is not at hand; name it"
    fresh = known.module(
        said.backend,
        "beside" if Option.BESIDE in said.options else "inside",
        layer=Option.LAYER in said.options,
        context_parallel=Option.CONTEXT_PARALLEL in said.options,
        tensor_parallel=Option.TENSOR_PARALLEL in said.options,
        signature=LayerSignature.FLA if Option.FLA in said.options else LayerSignature.DSFC,
    ).text
    if fresh == text:
        return True, f"what dsfc writes for {said.source}, byte for byte"
    if _reference(fresh) == _reference(text):
        return True, f"not what dsfc writes for {said.source}, but the reference is the same"
    return False, f"the reference is not that of {said.source}"


def _reference(text: str) -> dict[str, str]:
    """The code of a module's reference and of every function of the module that it reaches."""
    try:
        tree = parsed(text)
    except (SyntaxError, ValueError):
        return {}
    defined = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef)}
    reached: dict[str, str] = {}
    waiting = ["reference"]
    while waiting:
        name = waiting.pop()
        if name in defined and name not in reached:
            reached[name] = ast.dump(defined[name])
            waiting += _names(defined[name])
    return reached


def _names(node: ast.AST) -> Iterator[str]:
    return (n.id for n in ast.walk(node) if isinstance(n, ast.Name))
