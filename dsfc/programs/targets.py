"""Writes programs: for torch.export, as AOTInductor packages, for ONNX."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from dsfc.programs.agreement import Run
from dsfc.programs.linear_attention import DOMAIN, OPERATOR, OPSET
from dsfc.programs.program import Program
from dsfc.programs.real_form import real_form
from dsfc.programs.token_loop import NoProgram

if TYPE_CHECKING:
    import onnx


def write_torch(program: Program, path: Path) -> Run:
    """Writes what `torch.export.load` loads; returns what runs the file."""
    torch.export.save(program.exported, path)
    return _by_name(torch.export.load(path).module())


def write_aoti(program: Program, path: Path) -> Run:
    """Writes machine code, what `torch._inductor.aoti_load_package` loads; a compiler is needed.

    Raises:
        NoProgram: a tensor is complex. Inductor of PyTorch 2.13 writes no loop of such tensors, and
            of a step of S4D a program whose numbers are right at some batches and wrong at others.
    """
    known = _complex(program)
    if known:
        raise NoProgram(f"AOTInductor is not right for complex numbers, and {known} is complex")
    # Inductor of PyTorch 2.13 declares a result of a loop twice in C++ where a later operation
    # reuses its memory in place.
    options = {"inplace_buffers": False}
    with torch.no_grad():
        torch._inductor.aoti_compile_and_package(
            program.exported, package_path=str(path), inductor_configs=options
        )
    return _by_name(torch._inductor.aoti_load_package(str(path)))


def _by_name(run: Callable[..., Any]) -> Run:
    return lambda tensors: tuple(run(**tensors))


def write_onnx(program: Program, path: Path) -> Run:
    """Writes an ONNX file; a recurrence is its operator Scan.

    Raises:
        NoProgram: onnx, onnxscript or onnxruntime are not installed.
    """
    _exported_to_onnx(program, path)
    return _run_by_runtime(program, path)


def write_onnx_operators(program: Program, path: Path) -> Run:
    """Writes an ONNX file in which a recurrence is the operator LinearAttention.

    It is run by ONNX Runtime where that knows the operator, by the reference evaluator of ONNX
    where it does not.

    Raises:
        NoProgram: as `write_onnx`; or the installed onnx does not know the operator.
    """
    _exported_to_onnx(program, path)
    import onnx

    if onnx.defs.onnx_opset_version() < OPSET:
        raise NoProgram(f"onnx {onnx.__version__} has no {OPERATOR}: install onnx 1.23")
    onnx.save(_with_operators(onnx.load(path)), path)
    try:
        return _run_by_runtime(program, path)
    except Exception as e:  # what a foreign runtime raises of an operator that it does not know
        logging.getLogger(__name__).info("run by the reference evaluator of ONNX: %s", e)
    return _run_by_reference(program, path)


def _with_operators(model: onnx.ModelProto) -> onnx.ModelProto:
    """A model of the operator set that has the operators, which stood in for them until then."""
    from onnx import checker, version_converter

    model = version_converter.convert_version(model, OPSET)
    for node in model.graph.node:
        if node.domain == DOMAIN:
            node.domain = ""
    sets = [x for x in model.opset_import if x.domain != DOMAIN]
    del model.opset_import[:]
    model.opset_import.extend(sets)
    checker.check_model(model, full_check=True)
    return model


def _exported_to_onnx(program: Program, path: Path) -> None:
    try:
        import onnxruntime  # noqa: F401 - what runs the file
        import onnxscript  # noqa: F401 - the exporter of torch needs it
    except ImportError as e:
        raise NoProgram(f"{e.name} is not installed: install dsfc[export]") from None
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exported = torch.onnx.export(
            program.exported,
            dynamo=True,
            input_names=list(program.inputs),
            output_names=list(program.outputs),
            verbose=False,
        )
    assert exported is not None
    exported.save(str(path))


def _run_by_runtime(program: Program, path: Path) -> Run:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    loaded = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return _run_by(program, loaded.run)


def _run_by_reference(program: Program, path: Path) -> Run:
    from onnx.reference import ReferenceEvaluator

    return _run_by(program, ReferenceEvaluator(str(path)).run)


def _run_by(program: Program, run: Callable[..., Any]) -> Run:
    def by_name(tensors: Mapping[str, Tensor]) -> tuple[Tensor, ...]:
        arrays = {name: tensors[name].cpu().numpy() for name in program.inputs}
        return tuple(torch.from_numpy(x) for x in run(list(program.outputs), arrays))

    return by_name


_WRITERS: Mapping[str, Callable[[Program, Path], Run]] = {
    "torch": write_torch,
    "aoti": write_aoti,
    "onnx": write_onnx,
}
TARGETS = tuple(_WRITERS)
"""What a program can be written for."""
OPERATORS = ("linear_attention",)
"""Operators of ONNX that may take the place of a recurrence."""


def form_for(program: Program, to: str) -> Program:
    """Returns a program in the form that a target takes: ONNX has no complex numbers.

    Args:
        program: the program.
        to: one of `TARGETS`.

    Raises:
        NoProgram: it has no such form.
    """
    return real_form(program) if to == "onnx" else program


def write(program: Program, to: str, path: Path, operator: str | None = None) -> Run:
    """Writes a program and returns what runs the file.

    Args:
        program: the program, in the form for the target.
        to: one of `TARGETS`.
        path: the file.
        operator: one of `OPERATORS` that stands in the program, which is for `onnx` then.

    Raises:
        NoProgram: PyTorch's exporter or compiler does not take the program, or a library is absent.
    """
    try:
        return (write_onnx_operators if operator else _WRITERS[to])(program, path)
    except NoProgram:
        raise
    except Exception as e:  # whatever a foreign compiler raises, an internal error of it too
        reason = [line.strip() for line in str(e).splitlines() if line.strip()]
        said = (reason or [type(e).__name__])[0].rstrip(":")
        raise NoProgram(f"PyTorch does not write it: {said}") from e


def _complex(program: Program) -> str | None:
    """Returns the name of the first complex tensor that a program computes with, if any is."""
    held = {n.name: n.meta["val"] for n in program.exported.graph.nodes if "val" in n.meta}
    return next((n for n, x in held.items() if isinstance(x, Tensor) and x.is_complex()), None)
