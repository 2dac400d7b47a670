"""Every shipped mixer lowers; its System is the mixer and its oracle."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

from dsfc.derive.derive import derive
from dsfc.diagnostics.report import DiagnosticError
from dsfc.mixer import evaluate as evaluate_mixer
from dsfc.mixer import sample, sizes
from dsfc.mixer.ir import Mixer
from dsfc.system.evaluate import evaluate
from dsfc.system.ir import Cache
from dsfc.system.traverse import parts, trees
from dsfc.system.verify import verify

ROOT = Path(__file__).parents[2]
MIXERS = sorted(
    path.stem
    for path in (ROOT / "tests" / "oracles").glob("*.py")
    if not path.stem.startswith(("test_", "conftest"))
)
TOLERANCE = 1e-12


def near(got: np.ndarray, want: np.ndarray) -> bool:
    assert got.shape == want.shape
    return not got.size or np.abs(got - want).max() <= TOLERANCE * max(1.0, np.abs(want).max())


def feature_maps(module: ModuleType, seed: int):
    """Matrices of the oracle's default feature maps, and those maps in numpy."""
    generator = np.random.default_rng(seed)
    drawn = {
        name: generator.normal(0, 0.6, shape)
        for name, shape in module.shapes(module.DIMS).get("abstracts", {}).items()
    }
    maps = {
        name.removesuffix("_A"): lambda x, matrix=matrix: np.tanh(x @ matrix.T)
        for name, matrix in drawn.items()
    }
    return {name: torch.tensor(matrix) for name, matrix in drawn.items()}, maps


@pytest.mark.share(5)
@pytest.mark.parametrize("name", MIXERS)
def test_the_system_is_the_mixer_and_its_oracle(
    name: str, shipped: Callable[[str], Mixer], oracle: Callable[[str], ModuleType]
) -> None:
    mixer, module = shipped(name), oracle(name)
    system = derive(mixer)
    verify(system)
    axes = {d.axis.name for d in mixer.axes}
    known = sizes(mixer, {k: v for k, v in module.DIMS.items() if k in axes})
    for length, started in ((0, False), (1, False), (2, True), (7, False), (7, True)):
        drawn = sample(mixer, known, seed=length, length=length)
        matrices, maps = feature_maps(module, length)
        # An oracle may write the recurrence with another state, or none.
        started = started and bool(module.shapes(module.DIMS)["states"])
        initial = drawn.initial if started and mixer.states else None
        got = evaluate(system, drawn.inputs, drawn.params, known, initial, maps)
        literal = evaluate_mixer(mixer, drawn.inputs, drawn.params, known, maps, initial)
        assert near(got.outputs["y"], literal["y"])
        tensors = {k: torch.tensor(v) for k, v in drawn.params.items()} | matrices
        tensors |= {k: torch.tensor(v)[None] for k, v in drawn.inputs.items()}
        start = None if initial is None else {k: torch.tensor(v)[None] for k, v in initial.items()}
        want, final = module.forward(tensors, module.DIMS, start)
        assert near(got.outputs["y"], want[0].numpy())
        for state, value in final.items():
            assert near(got.finals[state], value[0].numpy())


@pytest.mark.share(5)
@pytest.mark.parametrize("name", MIXERS)
def test_only_softmax_keeps_all_tokens(name: str, shipped: Callable[[str], Mixer]) -> None:
    system = derive(shipped(name))
    caches = [n for t in trees(system) for n in parts(t) if isinstance(n, Cache)]
    assert bool(caches) == (name == "softmax")
    assert all("`exp(n^(-1/2) * q · k[j])` does not separate" in c.why for c in caches)


def test_lstm_is_refused_with_culprit_path_and_repairs(shipped: Callable[[str], Mixer]) -> None:
    with pytest.raises(DiagnosticError) as caught:
        derive(shipped("lstm"))
    first, second = caught.value.diagnostics
    assert str(first) == (
        "E-NONLINEAR-STATE: `c` is not linear in its past: the factor `f` of `c[i-1]` depends on "
        "the state through f → y[i-1]; a coefficient may read inputs (and states that do not "
        "depend on `c`) only; drop the recurrent term to bring it in"
    )
    assert second.state == "y"
    assert first.hint == (
        "drop the recurrent terms (U_f = U_i = U_o = U_u = 0); apply `tanh` to the input map and "
        "at the read-out instead of to the state"
    )


def test_derivation_is_deterministic(shipped: Callable[[str], Mixer]) -> None:
    for name in ("taylor_softmax", "gla_block", "dlr_prod"):
        assert derive(shipped(name)) == derive(shipped(name))


def test_derivation_is_recorded(shipped: Callable[[str], Mixer]) -> None:
    rules = [s.rule for s in derive(shipped("linear_attn")).derivation]
    assert rules.count("L1 separate") == 2
    assert rules.index("L1 separate") < rules.index("L2 stage") < rules.index("L3 affine")
    assert "L5 read-out" in rules


def test_the_definition_is_carried_as_written(shipped: Callable[[str], Mixer]) -> None:
    mixer = shipped("normalized_attn")
    system = derive(mixer)
    assert [d.name for d in system.definition] == [d.name for d in mixer.definitions]
    assert all(
        a.value is b.value for a, b in zip(system.definition, mixer.definitions, strict=True)
    )
