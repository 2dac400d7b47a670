"""What is exported, run in a process of its own that has neither dsfc nor the emitted module."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import dsfc
from dsfc.validate.surface import Surface, surface

MIXERS = (
    "retnet", "softmax", "normalized_attn", "linear_attn", "gla", "s6", "ssd", "deltanet",
    "gated_deltanet", "kda", "rwkv7", "rg_lru", "lru", "mlstm",
)  # fmt: skip
"""Attention, all classes of states, a complex one, and one over a running maximum."""

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


@dataclass(frozen=True)
class Made:
    """A layer in float32.

    Attributes:
        about: its module.
        layer: with parameters drawn.
    """

    about: Surface
    layer: Any


def made(mixer: str, folder: Path) -> Made:
    """Compiles a shipped mixer into a folder, and makes a layer of it."""
    about = surface(dsfc.import_module(dsfc.compile(mixer, out=folder)))
    return Made(about, about.layer(torch.float32))


def error(exported: Any, of: Made, to: str, step: bool) -> float:
    """The largest relative error of a program beside its layer, run in a process of its own.

    At a batch and a length that it was neither traced nor tried with.
    """
    known, layer = of.about, of.layer
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


def check(of: Made, folder: Path, to: str, step: bool) -> None:
    """Exports a layer, or its step, and holds what the program gives to what the layer gives.

    Raises:
        DiagnosticError: there is no such program of this layer.
        AssertionError: it gives something else, or does not run.
    """
    path = folder / f"{of.about.mixer}.{'onnx' if to == 'onnx' else 'pt2'}"
    exported = dsfc.export(of.layer, path, to=to, step=step)
    assert exported.inputs == (*of.about.inputs, *of.about.states)
    # Sums in another order: some units of rounding in float32.
    assert error(exported, of, to, step) < 1e-5
