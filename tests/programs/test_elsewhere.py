"""What is exported runs in a process that has neither dsfc nor the emitted module."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import dsfc
from dsfc.diagnostics.report import DiagnosticError
from dsfc.validate.surface import surface

MIXERS = (
    "retnet", "softmax", "normalized_attn", "linear_attn", "gla", "s6", "ssd", "deltanet",
    "gated_deltanet", "kda", "rwkv7", "rg_lru", "lru", "mlstm",
)  # fmt: skip
"""Attention, all classes of states, a complex one, and one over a running maximum."""

COMPLEX = ("lru",)

HEAD = """
import sys
sys.modules["dsfc"] = None  # importing it fails
{absent}
path, data = sys.argv[1:]
"""

TORCH = """
import torch
given, want = torch.load(data)
with torch.no_grad():
    got = {load}(**given)
error = max(((g - w).abs().max() / w.abs().max()).item() for g, w in zip(got, want, strict=True))
assert not any(name.startswith("dsfc_") for name in sys.modules)
"""

ONNX = """
import numpy, onnxruntime
data = numpy.load(data)
loaded = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
inputs = [x.name for x in loaded.get_inputs()]
outputs = [x.name for x in loaded.get_outputs()]
got = loaded.run(outputs, {{name: data[name] for name in inputs}})
error = max(abs(g - data[n]).max() / abs(data[n]).max() for n, g in zip(outputs, got, strict=True))
"""

LOADED = {
    "torch": (TORCH, "torch.export.load(path).module()"),
    "aoti": (TORCH, "torch._inductor.aoti_load_package(path)"),
    "onnx": (ONNX, ""),
}


@pytest.fixture(scope="module")
def layers(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Makes layers in float32, each once."""
    folder, kept = tmp_path_factory.mktemp("modules"), {}

    def layer(mixer: str) -> Any:
        if mixer not in kept:
            module = dsfc.import_module(dsfc.compile(mixer, out=folder))
            kept[mixer] = surface(module), surface(module).layer(torch.float32)
        return kept[mixer]

    return layer


def elsewhere(exported: Any, known: Any, layer: Any, to: str, step: bool) -> float:
    """The largest relative error of a program beside its layer, run in a process of its own.

    At a batch and a length that it was neither traced nor tried with.
    """
    inputs, earlier = known.draw(23, 5, torch.float32, 7), known.draw(6, 5, torch.float32, 8)
    with torch.no_grad():
        _, state = layer(**earlier, return_state=True)
        if step:
            inputs = {name: x[:, 0] for name, x in inputs.items()}
            y, after = layer.step(*inputs.values(), state)
        else:
            y, after = layer(**inputs, state=state, return_state=True)
    given = {**inputs, **known.tensors(state)}
    want = (y, *known.tensors(after).values())
    body, load = LOADED[to]
    data = exported.path.with_suffix(".data")
    if to == "onnx":
        import numpy

        arrays = given | dict(zip(exported.outputs, want, strict=True))
        with data.open("wb") as file:
            numpy.savez(file, **{name: x.numpy() for name, x in arrays.items()})
    else:
        torch.save((given, want), data)
    absent = 'sys.modules["torch"] = None' if to == "onnx" else ""
    program = (HEAD + body + "print(error)").format(load=load, absent=absent)
    done = subprocess.run(
        [sys.executable, "-I", "-W", "ignore", "-c", program, str(exported.path), str(data)],
        capture_output=True, text=True, check=False, cwd=exported.path.parent,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return float(done.stdout)


def check(layers: Any, folder: Path, mixer: str, to: str, step: bool) -> None:
    known, layer = layers(mixer)
    path = folder / f"{mixer}.{'onnx' if to == 'onnx' else 'pt2'}"
    exported = dsfc.export(layer, path, to=to, step=step)
    assert exported.inputs == (*known.inputs, *known.states)
    # Sums in another order: some units of rounding in float32.
    assert elsewhere(exported, known, layer, to, step) < 1e-5


@pytest.mark.ci
@pytest.mark.share(14, ci=7)
@pytest.mark.parametrize("mixer", MIXERS)
def test_a_program_of_torch_export_loads_without_the_module(layers, tmp_path, mixer):
    check(layers, tmp_path, mixer, "torch", step=False)


@pytest.mark.ci
@pytest.mark.share(1, ci=14)
@pytest.mark.parametrize("mixer", MIXERS)
def test_a_step_of_torch_export_loads_without_the_module(layers, tmp_path, mixer):
    check(layers, tmp_path, mixer, "torch", step=True)


@pytest.mark.ci
@pytest.mark.share(1, ci=9)
@pytest.mark.parametrize("step", [False, True], ids=["whole", "step"])
@pytest.mark.parametrize("mixer", MIXERS)
def test_an_onnx_file_runs_without_torch(layers, tmp_path, mixer, step):
    pytest.importorskip("onnxruntime")
    if mixer in COMPLEX:
        with pytest.raises(DiagnosticError, match="complex"):
            check(layers, tmp_path, mixer, "onnx", step)
    else:
        check(layers, tmp_path, mixer, "onnx", step)


NOT_COMPILED = {"lru": "does not write it", "mlstm": "gives other numbers"}
"""What Inductor of PyTorch 2.13 refuses, or computes otherwise."""


@pytest.mark.full
@pytest.mark.parametrize("mixer", MIXERS)
def test_machine_code_loads_without_the_module(layers, tmp_path, mixer):
    for step in (False, True):
        if mixer in NOT_COMPILED:
            with pytest.raises(DiagnosticError, match=NOT_COMPILED[mixer]):
                check(layers, tmp_path, mixer, "aoti", step)
        else:
            check(layers, tmp_path, mixer, "aoti", step)
