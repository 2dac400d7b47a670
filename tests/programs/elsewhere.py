"""Exports mixers and runs the programs elsewhere: python tests/programs/elsewhere.py [WORD ...].

Each mixer is exported for each target, whole sequences and steps, and each program is run in a
process of its own that has neither dsfc nor the emitted module (of ONNX no torch either), at a
batch and a length that it was neither traced nor tried with. The script writes what came of each
into `tests/campaigns/exports.json`, from which `docs/how_to/export.md` prints its table. Words are
mixers and targets: of those alone it runs, and the others keep what is there. AOTInductor compiles
for up to a minute each time.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

import dsfc
from dsfc.diagnostics.report import DiagnosticError
from dsfc.validate.surface import surface

DATA = Path(__file__).parents[1] / "campaigns" / "exports.json"

MIXERS = (
    "softmax", "normalized_attn", "linear_attn", "retnet", "gla", "s6", "ssd", "deltanet",
    "gated_deltanet", "kda", "rwkv7", "rg_lru", "mlstm", "lru", "s4d",
)  # fmt: skip
"""Attention, all classes of states, two complex ones, and one over a running maximum."""

TARGETS = ("torch", "aoti", "onnx")

CLOSE = 1e-5
"""Largest relative error in float32: sums in another order, some units of rounding."""

Outcome = dict[str, Any]
"""`error`, the largest relative error; or `refused`, what the diagnostic says."""


@dataclass(frozen=True)
class Case:
    """A layer to export.

    Attributes:
        mixer: name of a shipped spec.
        to: the target.
        step: whether the program takes one token.
    """

    mixer: str
    to: str
    step: bool

    @property
    def takes(self) -> str:
        """What the program takes."""
        return "step" if self.step else "whole"


CASES = tuple(Case(m, to, step) for m in MIXERS for to in TARGETS for step in (False, True))

_HEAD = """
import sys
sys.modules["dsfc"] = None  # importing it fails
{absent}
path, data = sys.argv[1:]
"""

_TORCH = """
import torch
given, want = torch.load(data)
with torch.no_grad():
    got = {load}(**given)
error = max(((g - w).abs().max() / w.abs().max()).item() for g, w in zip(got, want, strict=True))
assert not any(name.startswith("dsfc_") for name in sys.modules)
"""

_ONNX = """
import numpy, onnxruntime
data = numpy.load(data)
loaded = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
inputs = [x.name for x in loaded.get_inputs()]
outputs = [x.name for x in loaded.get_outputs()]
got = loaded.run(outputs, {{name: data[name] for name in inputs}})
error = max(abs(g - data[n]).max() / abs(data[n]).max() for n, g in zip(outputs, got, strict=True))
"""

_LOADED = {
    "torch": (_TORCH, "torch.export.load(path).module()"),
    "aoti": (_TORCH, "torch._inductor.aoti_load_package(path)"),
    "onnx": (_ONNX, ""),
}


@cache
def layer_of(mixer: str) -> tuple[Any, Any]:
    """A layer in float32 and what its module says of itself."""
    with TemporaryDirectory() as folder:
        known = surface(dsfc.import_module(dsfc.compile(mixer, out=folder)))
    return known, known.layer(torch.float32)


def outcome(case: Case, folder: Path) -> Outcome:
    """Exports a layer and runs the program elsewhere.

    Args:
        case: the layer.
        folder: an empty one to write into.
    """
    known, layer = layer_of(case.mixer)
    path = folder / f"{case.mixer}.{'onnx' if case.to == 'onnx' else 'pt2'}"
    try:
        exported = dsfc.export(layer, path, to=case.to, step=case.step)
    except DiagnosticError as e:
        (diagnostic,) = e.diagnostics
        assert diagnostic.code == "E-EXPORT" and not path.exists()
        return {"refused": diagnostic.message}
    assert exported.inputs == (*known.inputs, *known.states)
    return {"error": float(f"{_error(exported, known, layer, case):.1e}")}


def _error(exported: Any, known: Any, layer: Any, case: Case) -> float:
    """The largest relative error of a program beside its layer."""
    inputs, earlier = known.draw(23, 5, torch.float32, 7), known.draw(6, 5, torch.float32, 8)
    with torch.no_grad():
        _, state = layer(**earlier, return_state=True)
        if case.step:
            inputs = {name: x[:, 0] for name, x in inputs.items()}
            y, after = layer.step(*inputs.values(), state)
        else:
            y, after = layer(**inputs, state=state, return_state=True)
    given = {**inputs, **known.tensors(state)}
    want = (y, *known.tensors(after).values())
    body, load = _LOADED[case.to]
    data = exported.path.with_suffix(".data")
    if case.to == "onnx":
        import numpy

        arrays = given | dict(zip(exported.outputs, want, strict=True))
        pairs = {name: torch.view_as_real(arrays[name]) for name in exported.parts}
        with data.open("wb") as file:
            numpy.savez(file, **{name: x.numpy() for name, x in (arrays | pairs).items()})
    else:
        torch.save((given, want), data)
    absent = 'sys.modules["torch"] = None' if case.to == "onnx" else ""
    program = (_HEAD + body + "print(error)").format(load=load, absent=absent)
    done = subprocess.run(
        [sys.executable, "-I", "-W", "ignore", "-c", program, str(exported.path), str(data)],
        capture_output=True, text=True, check=False, cwd=exported.path.parent,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return float(done.stdout)


def recorded() -> dict[str, Any]:
    """Returns the data that the script left."""
    kept: dict[str, Any] = json.loads(DATA.read_text(encoding="utf-8"))
    return kept


def main(words: list[str]) -> None:
    """Runs the mixers and targets that are named, all if none is, and writes what came of each."""
    if unknown := {*words} - {*MIXERS, *TARGETS}:
        raise SystemExit(f"no mixer or target: {', '.join(sorted(unknown))}")
    mixers, targets = ([x for x in every if x in words] or every for every in (MIXERS, TARGETS))
    packages = ("dsfc", "torch", "onnx", "onnxruntime", "onnxscript")
    for to in targets:
        for mixer in mixers:
            came: dict[str, Any] = {}
            for case in (Case(mixer, to, step) for step in (False, True)):
                with TemporaryDirectory() as folder:
                    came[case.takes] = outcome(case, Path(folder))
                print(case.mixer, case.to, case.takes, came[case.takes], flush=True)
            came["date"] = datetime.now(UTC).strftime("%Y-%m-%d")
            came["versions"] = {
                "python": platform.python_version(), **{name: version(name) for name in packages}
            }  # fmt: skip
            kept = recorded()["mixers"]  # another run may have written since
            kept.setdefault(mixer, {})[to] = came
            found = {"mixers": {name: _ordered(kept[name]) for name in MIXERS if name in kept}}
            DATA.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def _ordered(came: dict[str, Any]) -> dict[str, Any]:
    return {to: came[to] for to in TARGETS if to in came}


if __name__ == "__main__":
    main(sys.argv[1:])
