"""Every shipped spec, run literally, is its hand-written oracle."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

from dsfc.mixer import evaluate, sample, sizes
from dsfc.mixer.ir import Mixer

ROOT = Path(__file__).parents[2]
MIXERS = sorted(
    path.stem
    for path in (ROOT / "tests" / "oracles").glob("*.py")
    if not path.stem.startswith(("test_", "conftest"))
)
OTHER_STATES = ("mamba3",)
"""Mixers whose spec keeps another state than the recurrence of the paper: outputs are compared."""
TOLERANCE = 1e-12

Array = np.ndarray
Shipped = Callable[[str], Mixer]
Oracle = Callable[[str], ModuleType]


def near(got: Array, want: Array) -> bool:
    assert got.shape == want.shape
    return not got.size or np.abs(got - want).max() <= TOLERANCE * max(1.0, np.abs(want).max())


def known_sizes(mixer: Mixer, module: ModuleType) -> dict[str, int]:
    axes = {d.axis.name for d in mixer.axes}
    return sizes(mixer, {name: size for name, size in module.DIMS.items() if name in axes})


def tanh_maps(
    module: ModuleType, seed: int
) -> tuple[dict[str, torch.Tensor], dict[str, Callable[[Array], Array]]]:
    """Matrices of the oracle's default feature maps, and those maps in numpy."""
    generator = np.random.default_rng(seed)
    matrices = {
        name: generator.normal(0, 0.6, shape)
        for name, shape in module.shapes(module.DIMS).get("abstracts", {}).items()
    }
    maps = {name.removesuffix("_A"): _tanh(matrix) for name, matrix in matrices.items()}
    return {name: torch.tensor(matrix) for name, matrix in matrices.items()}, maps


def _tanh(matrix: Array) -> Callable[[Array], Array]:
    return lambda x: np.tanh(x @ matrix.T)


@pytest.mark.share(5)
@pytest.mark.parametrize("name", MIXERS)
@pytest.mark.parametrize("length", [0, 1, 2, 7])
def test_evaluation_is_the_oracle(name: str, length: int, shipped: Shipped, oracle: Oracle) -> None:
    mixer, module = shipped(name), oracle(name)
    known = known_sizes(mixer, module)
    drawn = sample(mixer, known, seed=length, length=length)
    matrices, maps = tanh_maps(module, seed=length)
    tensors = {k: torch.tensor(v) for k, v in drawn.params.items()} | matrices
    tensors |= {k: torch.tensor(v)[None] for k, v in drawn.inputs.items()}
    carried = mixer.states and name not in OTHER_STATES
    for initial in (None, drawn.initial) if carried else (None,):
        start = initial and {k: torch.tensor(v)[None] for k, v in initial.items()}
        want, final = module.forward(tensors, module.DIMS, start)
        got = evaluate(mixer, drawn.inputs, drawn.params, known, maps, initial)
        assert near(got["y"], want[0].numpy())
        for state, value in final.items():
            assert not length or near(got[state][-1], value[0].numpy())


@pytest.mark.share(5)
@pytest.mark.parametrize("name", MIXERS)
def test_declared_tensors_are_those_of_the_oracle(
    name: str, shipped: Shipped, oracle: Oracle
) -> None:
    mixer, module = shipped(name), oracle(name)
    known = known_sizes(mixer, module)
    drawn = sample(mixer, known, seed=0, length=1)
    shapes = module.shapes(module.DIMS)
    assert {t.name for t in mixer.inputs} == set(shapes["inputs"])
    assert {t.name for t in mixer.params} == set(shapes["params"])
    assert {t.name for t in mixer.buffers} == set(shapes["buffers"])
    states = {s.name for s in mixer.states}
    assert set(shapes["states"]) == (set() if name in OTHER_STATES else states)
    for tensor, shape in {**shapes["params"], **shapes["buffers"]}.items():
        assert drawn.params[tensor].shape == shape
    for tensor, shape in shapes["inputs"].items():
        assert drawn.inputs[tensor].shape[1:] == shape
    constraints = {
        t.name: t.constraint.value
        for t in (*mixer.inputs, *mixer.params, *mixer.buffers)
        if getattr(t, "constraint", None) is not None and t.constraint.value != "none"
    }
    assert constraints == module.CONSTRAINTS
