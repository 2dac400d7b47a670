"""Lifts PyTorch modules into specs, and takes them where a spec is taken.

A word `file.py:Name` names a class, a function or a module in a Python file. Lifting it imports the
file, which runs it; nothing else that reads specs runs anything.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dsfc.api.locate import Place
from dsfc.api.pipeline import Compilation, SpecText
from dsfc.diagnostics.catalogue import NotLifted
from dsfc.diagnostics.report import Diagnostic, DiagnosticError
from dsfc.emit.importing import import_module
from dsfc.emit.module import write as write_module
from dsfc.lift.check import Disagrees, Tested, compare
from dsfc.lift.failure import CannotLift
from dsfc.lift.ir import Where
from dsfc.lift.operations import OPERATIONS
from dsfc.lift.recognise import Recogniser
from dsfc.lift.spec import Writer, Written
from dsfc.lift.trace import build, trace
from dsfc.lift.values import Value, filled
from dsfc.source import Source, Span
from dsfc.syntax.format import format_spec
from dsfc.syntax.letters import fold
from dsfc.syntax.parse import parse

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class Lifted:
    """A module as a spec.

    Attributes:
        text: the spec.
        compilation: its way through the stages.
        tested: what running both showed; None where the spec does not compile.
        untested: why it was not run, where it was not.
        renamed: what a name of the spec is in the module, where it is a part or a view of it.
    """

    text: str
    compilation: Compilation
    tested: Tested | None
    untested: str | None
    renamed: Mapping[str, str]


def lift(
    path: str | os.PathLike[str],
    name: str,
    arguments: Mapping[str, object] | None = None,
    inputs: Mapping[str, Sequence[object]] | None = None,
) -> Lifted:
    """Returns a PyTorch module as a spec, once both have given equal outputs and gradients.

    Importing the file runs it.

    Args:
        path: a Python file.
        name: of a class, a function that makes a module, a module, or a function of tensors.
        arguments: what the class or function is called with.
        inputs: shapes of the module's inputs, of "B", "T" and numbers; guessed where left out.

    Raises:
        DiagnosticError: E-LIFT, at the line of the user's code that cannot be lifted; or E-FILE.
    """
    file = Path(path)
    try:
        module = build(file, name, arguments or {})
    except CannotLift as e:
        raise DiagnosticError((_diagnostic(e, file),)) from e
    return lift_module(module, name, file, inputs)


def lift_module(
    module: nn.Module,
    name: str,
    file: Path,
    inputs: Mapping[str, Sequence[object]] | None = None,
) -> Lifted:
    """Returns a module at hand as a spec, as `lift` does one of a file.

    Args:
        module: the module, in double precision.
        name: what the mixer is called after.
        file: a Python file, where mistakes without a line of their own are said to be.
        inputs: as of `lift`.

    Raises:
        DiagnosticError: E-LIFT.
    """
    where: Where | None = None
    try:
        traced = trace(module, inputs or {})
        recogniser = Recogniser(traced, OPERATIONS)
        value = recogniser.run()
        _refuse_pairs(value)
        node = filled(value.node, value.axes)
        known = [i for i, _ in recogniser.inputs.values()]
        written = Writer(
            _mixer_name(name),
            f"lifted from {file.name}:{name}",
            node,
            known,
            [path for path, _, _ in traced.arrays.values()],
            recogniser.buffers,
        ).write()
        text = format_spec(written.spec)
        compilation = _compiled(text, file, written)
        layouts = {i.name: layout for i, layout in recogniser.inputs.values()}
        tested, untested = None, None
        try:
            built = compilation.module()
        except DiagnosticError as e:
            if any(d.code not in ("E-UNSUPPORTED",) for d in e.diagnostics):
                raise _of_the_spec(e, file, written) from None
            untested = e.diagnostics[0].message
        else:
            with tempfile.TemporaryDirectory(prefix="dsfc-") as folder:
                target = Path(folder) / f"{built.mixer}.py"
                write_module(built, target)
                emitted = import_module(target)
                tested = compare(traced, layouts, value.layout, written, compilation.system,
                                 emitted, built.class_name)  # fmt: skip
        return Lifted(text, compilation, tested, untested, _renamed(written))
    except CannotLift as e:
        raise DiagnosticError((_diagnostic(e, file),)) from e
    except Disagrees as e:
        problem = f"the module is not the spec that its trace with {traced.length} tokens says: {e}"
        hint = (
            "what the module does may depend on the number of tokens, or treat some of them apart"
        )
        raise DiagnosticError((_diagnostic(CannotLift(problem, where, hint), file),)) from e


def _refuse_pairs(output: Value) -> None:
    """Refuses an output that has two axes of tokens."""
    if len(output.times) > 1:
        hint = "sum it over one of its tokens, weighed by values"
        raise CannotLift("the output is a table of pairs of tokens", output.node.where, hint)


def _compiled(text: str, file: Path, written: Written) -> Compilation:
    """The spec, read and derived; what the derivation refuses is said of the user's line."""
    source = Source(f"{file.name} lifted", text)
    try:
        compilation = SpecText(Place(file.with_suffix(".dsf")), parse(source)).compilation()
        _ = compilation.system
        return compilation
    except DiagnosticError as e:
        raise _of_the_spec(e, file, written) from None


def _of_the_spec(error: DiagnosticError, file: Path, written: Written) -> DiagnosticError:
    """The diagnostic of a definition, at the line of the module that it comes from."""
    out: list[Diagnostic] = []
    for d in error.diagnostics:
        line = d.span.source.line(d.span.line) if d.span.source.text else ""
        defined = re.match(r"\s*(\w+) = ", line)
        name = defined[1] if defined else ""
        where = written.places.get(fold(name)) if name else None
        said = f"the spec of `{line.strip()}` is refused: {d.message}" if line else d.message
        out.append(_diagnostic(CannotLift(said, where, d.hint), file))
    return DiagnosticError(out)


def _diagnostic(error: CannotLift, file: Path) -> NotLifted:
    return NotLifted(_span(error.where, file), problem=error.problem, hint=error.hint)


def _span(where: Where | None, file: Path) -> Span:
    """A line of the user's code; the file where no line is known."""
    name = (
        file if where is None or Path(where.file).resolve() == file.resolve() else Path(where.file)
    )
    if where is None:
        return Source(os.fspath(name), "").span()
    try:
        source = Source(os.fspath(name), Path(where.file).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return Source(os.fspath(name), "").span()
    if where.line > len(source.line_starts):
        return source.span(0, 0)
    start = source.line_starts[where.line - 1]
    line = source.line(where.line)
    lead = len(line) - len(line.lstrip())
    return source.span(start + lead, start + len(line.rstrip()))


def _mixer_name(name: str) -> str:
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
    words = re.sub(r"\W", "_", words).strip("_")
    return words if words[:1].isalpha() else f"mixer_{words}"


def _renamed(written: Written) -> dict[str, str]:
    """The tensor of the module that each parameter of the spec comes from."""
    out = {}
    for name, param in written.params.items():
        parts = [param.path]
        for at, first, count in param.cuts:
            parts.append(f"entries {first} to {first + count - 1} of dimension {at}")
        if param.flipped:
            parts.append("the last tap first")
        out[name] = ", ".join(parts)
    return out
