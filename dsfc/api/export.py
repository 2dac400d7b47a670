"""Writes a layer of an emitted module as a program that runs without the module and dsfc."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType

from torch import nn

from dsfc import files
from dsfc.api.compile import compile_spec
from dsfc.api.imported import imported
from dsfc.api.operator_rule import linear_attention
from dsfc.diagnostics.catalogue import NoExport
from dsfc.diagnostics.file_error import file_error
from dsfc.diagnostics.report import DiagnosticError
from dsfc.programs.agreement import agreed
from dsfc.programs.program import program
from dsfc.programs.targets import OPERATORS, TARGETS, form_for, write
from dsfc.programs.token_loop import NoProgram, decompositions
from dsfc.source import NOWHERE
from dsfc.validate.surface import SurfaceError, surface
from dsfc.validate.weights import Unfit, read


@dataclass(frozen=True, slots=True)
class Exported:
    """A file that holds a program.

    Attributes:
        path: the file.
        inputs: names of inputs, then of the states before; a program takes them by name.
        outputs: `y`, then `S_next` of a state `S`, in the order of the results.
        error: largest relative difference from the layer, beside which it was run; a pure number.
        parts: of the inputs and outputs, the complex ones that ONNX takes and gives as real tensors
            with a last axis of 2, the real and imaginary parts, as `torch.view_as_real` does.
    """

    path: Path
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    error: float
    parts: tuple[str, ...] = ()


def export(
    layer: nn.Module,
    path: str | os.PathLike[str],
    *,
    to: str = "torch",
    step: bool = False,
    operator: str | None = None,
) -> Exported:
    """Writes a layer as a program of open batch and length, with the layer's parameters.

    The program takes the inputs `[B, L, ...]` and the tensors of the state before, by name, and
    returns y and the tensors of the state after. It needs neither the emitted module nor dsfc. It
    is run beside the layer before the file is written. In an ONNX file a complex state is a real
    tensor with a last axis of 2.

    Args:
        layer: an instance of the class of an emitted module.
        path: the file to write; it is replaced. For `torch` and `aoti` it ends in `.pt2`.
        to: `torch`, for `torch.export.load`; `aoti`, machine code for
            `torch._inductor.aoti_load_package`; or `onnx`.
        step: whether the program takes one token, `[B, ...]`, for decoding.
        operator: `linear_attention` for ONNX's own operator LinearAttention (operator set 27) in
            the place of the loop over tokens, where a proof says that the layer's recurrence is one
            of its update rules. Only with `onnx`.

    Returns:
        the file, the names of what the program takes and gives, and how far it is from the layer.

    Raises:
        DiagnosticError: E-EXPORT, with what stands against it; E-FILE, the file cannot be written.
        ValueError: no such target or operator.
    """
    if to not in TARGETS:
        raise ValueError(f"to must be one of {', '.join(TARGETS)}, got {to!r}")
    if operator is not None and (operator not in OPERATORS or to != "onnx"):
        raise ValueError(f"operator is for onnx, one of {', '.join(OPERATORS)}, got {operator!r}")
    file = Path(path)
    try:
        _check_suffix(file, to)
        replaced = decompositions if operator is None else linear_attention
        traced = form_for(program(layer, step, replaced), to)
        with TemporaryDirectory(prefix="dsfc-") as folder, _quietly():
            draft = Path(folder) / file.name
            error = agreed(traced, write(traced, to, draft, operator), to)
            content = draft.read_bytes()
    except NoProgram as e:
        known = NoExport(NOWHERE, layer=type(layer).__name__, target=to, problem=str(e))
        raise DiagnosticError((known,)) from e
    try:
        with files.draft(file) as part:
            part.write_bytes(content)
            part.replace(file)
    except OSError as e:
        raise file_error(file, e) from e
    return Exported(file, traced.inputs, traced.outputs, error, traced.parts)


def _check_suffix(file: Path, to: str) -> None:
    suffix = ".onnx" if to == "onnx" else ".pt2"
    if file.suffix != suffix:
        raise NoProgram(f"{file.name} must end in {suffix}")


@contextmanager
def _quietly() -> Iterator[None]:
    """Keeps the exporters of PyTorch from telling what they skip."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)


def export_file(
    target: str | os.PathLike[str],
    path: str | os.PathLike[str],
    sizes: Mapping[str, int],
    *,
    weights: Path | None = None,
    mixer: str | None = None,
    to: str = "torch",
    step: bool = False,
    operator: str | None = None,
) -> Exported:
    """Makes the layer of a spec or of an emitted module, and writes it as `export` does.

    Args:
        target: the emitted file, which is imported; or a spec, which is compiled for this.
        path: the file to write.
        sizes: arguments of the class, by name.
        weights: a `state_dict` of the class, saved by torch; nothing in it is executed. Without,
            the parameters are drawn as the spec says.
        mixer: which mixer of the spec.
        to: as of `export`.
        step: as of `export`.
        operator: as of `export`.

    Returns:
        as `export`.

    Raises:
        DiagnosticError: as `export`; or the spec is wrong, the sizes do not fit the class, or the
            weights do not fit the layer.
    """
    file = Path(target)
    with TemporaryDirectory(prefix="dsfc-") as folder:
        emitted = file if file.suffix == ".py" else compile_spec(file, out=folder, mixer=mixer)
        module = imported(emitted)
        try:
            layer = _made(module, sizes)
            if weights is not None:
                _load(layer, weights)
        except (SurfaceError, Unfit) as e:
            known = NoExport(NOWHERE, layer=file.name, target=to, problem=str(e))
            raise DiagnosticError((known,)) from e
        return export(layer, path, to=to, step=step, operator=operator)


def _made(module: ModuleType, sizes: Mapping[str, int]) -> nn.Module:
    """The layer of a module at these sizes."""
    try:
        known = surface(module, sizes)
        return known.cls(**known.sizes).eval()
    except RuntimeError as e:  # PyTorch's, whose last line says what it cannot allocate
        raise SurfaceError(str(e).strip().splitlines()[-1].strip()) from e


def _load(layer: nn.Module, weights: Path) -> None:
    """Gives a layer the weights of a file."""
    try:
        layer.load_state_dict(dict(read(weights)))
    except RuntimeError as e:  # PyTorch's, a line for what is missing, unknown, of another shape
        lines = [line.strip() for line in str(e).splitlines()[1:]]
        raise Unfit(f"{weights} does not fit: {' '.join(lines)}") from e
