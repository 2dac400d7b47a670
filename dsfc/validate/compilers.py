"""Promises about `torch.compile`, `torch.export` and ahead-of-time packages.

Everything is compared in float64: compiled code may order sums differently, and in float64 that is
told apart from a fault without asking how well the mixer is conditioned.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch._C._dynamo.eval_frame import _debug_get_cache_entry_list

from dsfc.validate.compare import EXACT, BrokenPromiseError, agree, worst_of
from dsfc.validate.surface import Sample, Surface, ends, gradients, loss

LENGTHS = (97, 7, 11, 2, 3, 64, 65, 130, 1000, 17)
"""Ten lengths that one graph must serve.

PyTorch takes sizes that are equal when it traces to be equal for ever: the first length is none of
the sizes of axes.
"""

_OWN = (0, 1)
"""Lengths that always get a graph of their own in PyTorch."""
_EAGER = "aot_eager"


def compiled(surface: Surface) -> str:
    """`torch.compile(fullgraph=True)` gives the same numbers, forward and backward, every mode."""
    worst = 0.0
    for mode in (*surface.modes, "auto"):
        _, error = _compare(surface, _EAGER, (9,), False, mode)
        worst = max(worst, error)
    return worst_of(worst)


def dynamic(surface: Surface) -> str:
    """With `dynamic=True` one graph serves ten lengths, and 0 and 1 are right too."""
    graphs, worst = _compare(surface, _EAGER, (*LENGTHS, *_OWN), True)
    _one_graph(graphs, LENGTHS)
    return f"1 graph for {len(LENGTHS)} lengths; {worst_of(worst)}"


def inductor(surface: Surface) -> str:
    """The same through Inductor: forward and backward, fixed lengths and one dynamic graph."""
    _, worst = _compare(surface, "inductor", (70,), False)
    graphs, error = _compare(surface, "inductor", LENGTHS[:4], True)
    _one_graph(graphs, LENGTHS[:4])
    return worst_of(max(worst, error))


def exported(surface: Surface) -> str:
    """Exported with a dynamic length, saved and loaded, also in a new process: same numbers."""
    sample = surface.sample(6)
    with tempfile.TemporaryDirectory() as folder, _fresh_dynamo():
        file = Path(folder) / "program.pt2"
        torch.export.save(_export(surface, sample), file)
        again = torch.export.load(file).module()
        worst = 0.0
        for length in (2, 6, 11, 100):
            inputs = surface.draw(length, seed=length)
            want = _named(surface, _run(surface, sample, inputs))
            got = _named(surface, again(inputs, surface.tensors(sample.state)))
            worst = max(worst, agree(got, want, EXACT, f"L = {length}"))
        _elsewhere(surface, Path(folder), sample)
        first, *rest = sample.inputs.values()
        torch.export.export(sample.layer, (first, *rest), strict=True)
    return worst_of(worst)


def packaged(surface: Surface) -> str:
    """Packaged ahead of time with a dynamic length and loaded: same numbers."""
    sample = surface.sample(6)
    worst = 0.0
    with tempfile.TemporaryDirectory() as folder, torch.no_grad(), _fresh_dynamo():
        path = torch._inductor.aoti_compile_and_package(
            _export(surface, sample), package_path=str(Path(folder) / "package.pt2")
        )
        run = torch._inductor.aoti_load_package(path)
        for length in (2, 6, 100):
            inputs = surface.draw(length, seed=length)
            want = _named(surface, _run(surface, sample, inputs))
            got = _named(surface, run(inputs, surface.tensors(sample.state)))
            worst = max(worst, agree(got, want, EXACT, f"L = {length}"))
    return worst_of(worst)


# --- torch.compile --------------------------------------------------------------------------------


def _one_graph(graphs: list[int], lengths: tuple[int, ...]) -> None:
    if graphs[len(lengths) - 1] != 1:
        raise BrokenPromiseError(f"{graphs[len(lengths) - 1]} graphs for {len(lengths)} lengths")


def _compare(
    surface: Surface,
    backend: str,
    lengths: tuple[int, ...],
    many: bool,
    mode: str = "auto",
) -> tuple[list[int], float]:
    """Compiled and eager side by side.

    Returns:
        how many graphs there are after each length, and the largest error.
    """
    sample, carried = surface.sample(3), surface.carried

    def eager(inputs: dict[str, Tensor], state: Any) -> Any:  # noqa: ANN401 - a class of the module
        return sample.layer(**inputs, state=state, mode=mode, **carried)

    worst, graphs = 0.0, []
    with _fresh_dynamo():
        fast = torch.compile(eager, backend=backend, fullgraph=True, dynamic=many)
        for length in lengths:
            inputs = surface.draw(length, seed=length)
            want = _gradients(surface, sample, inputs, eager)
            got = _gradients(surface, sample, inputs, fast)
            worst = max(worst, agree(got, want, EXACT, f"{backend}, {mode}, L = {length}"))
            with torch.no_grad():
                y, _ = ends(fast(inputs, sample.state))
            agree({"y": y}, {"y": want["y"]}, EXACT, f"{backend}, {mode}, without gradient")
            # What is kept counts, not what is made: PyTorch traces a second time, and drops the
            # first graph, where an input is a float64 number on the CPU
            # (`TensorifyScalarRestartAnalysis`). Every graph is made with gradients and without.
            graphs.append(-(-len(_debug_get_cache_entry_list(eager.__code__)) // 2))
    return graphs, worst


def _gradients(
    surface: Surface,
    sample: Sample,
    inputs: dict[str, Tensor],
    run: Callable[[dict[str, Tensor], Any], Any],
) -> dict[str, Tensor]:
    leaves = {k: v.clone().requires_grad_() for k, v in inputs.items()}
    before = {k: v.clone().requires_grad_() for k, v in surface.tensors(sample.state).items()}
    state = None if sample.state is None else surface.module.State(**before)
    outs = _named(surface, run(leaves, state))
    parameters = {k: p for k, p in sample.layer.named_parameters() if p.requires_grad}
    wrt = {**leaves, **{f"state {k}": v for k, v in before.items()}, **parameters}
    scalar = loss(*outs.values()) + 0 * sum(x.sum().double() for x in wrt.values())
    grads = gradients(scalar, list(wrt.values()))
    named = {f"gradient of {k}": g for k, g in zip(wrt, grads, strict=True)}
    return {k: v.detach() for k, v in {**outs, **named}.items()}


def _named(surface: Surface, result: Any) -> dict[str, Tensor]:  # noqa: ANN401 - (y, state)
    y, state = ends(result)
    tensors = state if isinstance(state, dict) else surface.tensors(state)
    return {"y": y, **{f"last {k}": v for k, v in tensors.items()}}


def _run(surface: Surface, sample: Sample, inputs: dict[str, Tensor]) -> Any:  # noqa: ANN401 - y, or y and a state
    return sample.layer(**inputs, state=sample.state, **surface.carried)


@contextmanager
def _fresh_dynamo() -> Iterator[None]:
    torch._dynamo.reset()
    try:
        yield
    finally:
        torch._dynamo.reset()


# --- torch.export ---------------------------------------------------------------------------------


class _Program(nn.Module):
    """A layer with its state as a dictionary of tensors: a program that needs no import."""

    def __init__(self, surface: Surface, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer
        self._state, self._carried = surface.module.State, surface.carried
        self._names = surface.states if surface.causal else ()

    def forward(
        self, inputs: dict[str, Tensor], state: dict[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        before = self._state(**state) if self._carried else None
        y, after = ends(self.layer(**inputs, state=before, **self._carried))
        return y, {name: getattr(after, name) for name in self._names}


def _export(surface: Surface, sample: Sample) -> torch.export.ExportedProgram:
    length = torch.export.Dim("length", min=2, max=4096)
    state = surface.tensors(sample.state)
    return torch.export.export(
        _Program(surface, sample.layer),
        (dict(sample.inputs), state),
        dynamic_shapes=({k: {1: length} for k in sample.inputs}, dict.fromkeys(state)),
    )


_ELSEWHERE = """
import importlib.util, sys, torch
spec = importlib.util.spec_from_file_location("emitted", sys.argv[1])
module = sys.modules["emitted"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
inputs, state, want = torch.load(sys.argv[2], weights_only=True)
y, _ = torch.export.load(sys.argv[3]).module()(inputs, state)
error = ((y - want).abs().max() / want.abs().max()).item()
print("error", error)
"""


def _elsewhere(surface: Surface, folder: Path, sample: Sample) -> None:
    """Loads the saved program in a new process that has nothing but the module's file."""
    inputs = surface.draw(9)
    state = surface.tensors(sample.state)
    want = sample.layer(**inputs, state=sample.state).detach()
    torch.save((inputs, state, want), folder / "io.pt")
    arguments = [str(surface.module.__file__), str(folder / "io.pt"), str(folder / "program.pt2")]
    done = subprocess.run(
        [sys.executable, "-I", "-W", "ignore", "-c", _ELSEWHERE, *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    word, _, error = done.stdout.strip().rpartition(" ")
    if not word.endswith("error") or not float(error) <= EXACT:
        problem = done.stderr.strip().splitlines()[-1:] or [done.stdout.strip()]
        raise BrokenPromiseError(f"loaded in a new process: {problem[0]}")
