"""Writes a layer of an emitted module as a program that runs without the module and dsfc."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from torch import nn

from dsfc import files
from dsfc.diagnostics.catalogue import NoExport
from dsfc.diagnostics.file_error import file_error
from dsfc.diagnostics.report import DiagnosticError
from dsfc.programs.agreement import agreed
from dsfc.programs.program import program
from dsfc.programs.targets import TARGETS
from dsfc.programs.token_loop import NoProgram
from dsfc.source import NOWHERE


@dataclass(frozen=True, slots=True)
class Exported:
    """A file that holds a program.

    Attributes:
        path: the file.
        inputs: names of inputs, then of the states before, in the order of the arguments.
        outputs: `y`, then `S_next` of a state `S`, in the order of the results.
        error: largest relative difference from the layer, where the program was run beside it.
    """

    path: Path
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    error: float


def export(
    layer: nn.Module,
    path: str | os.PathLike[str],
    *,
    to: str = "torch",
    step: bool = False,
) -> Exported:
    """Writes a layer as a program of open batch and length, with the layer's parameters.

    The program takes the inputs `[B, L, ...]` and the tensors of the state before, by name or in
    this order, and returns y and the tensors of the state after. It needs neither the emitted
    module nor dsfc. It is run beside the layer before the file is written.

    Args:
        layer: an instance of the class of an emitted module.
        path: the file to write; it is replaced. For `torch` and `aoti` it ends in `.pt2`.
        to: `torch`, for `torch.export.load`; `aoti`, machine code for
            `torch._inductor.aoti_load_package`; or `onnx`.
        step: whether the program takes one token, `[B, ...]`, for decoding.

    Raises:
        DiagnosticError: E-EXPORT, with what stands against it; E-FILE, the file cannot be written.
        ValueError: no such target.
    """
    if to not in TARGETS:
        raise ValueError(f"to must be one of {', '.join(TARGETS)}, got {to!r}")
    file = Path(path)
    suffix = ".onnx" if to == "onnx" else ".pt2"
    try:
        if file.suffix != suffix:
            raise NoProgram(f"{file.name} must end in {suffix}")
        traced = program(layer, step)
        with TemporaryDirectory(prefix="dsfc-") as folder, _quietly():
            made = Path(folder) / file.name
            error = agreed(traced, TARGETS[to](traced, made), to)
            content = made.read_bytes()
    except NoProgram as e:
        known = NoExport(NOWHERE, layer=type(layer).__name__, target=to, problem=str(e))
        raise DiagnosticError((known,)) from e
    try:
        with files.draft(file) as part:
            part.write_bytes(content)
            part.replace(file)
    except OSError as e:
        raise file_error(file, e.strerror or str(e)) from e
    return Exported(file, traced.inputs, traced.outputs, error)


@contextmanager
def _quietly() -> Iterator[None]:
    """Keeps the exporters of PyTorch from telling what they skip."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)
