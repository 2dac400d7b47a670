"""A plan computes what its System computes, states included."""

from __future__ import annotations

import numpy as np
import pytest
from material import draw
from shipped_specs import PLANNED
from unusual_specs import COMPILED, thirds

from dsfc.plan.evaluate import evaluate
from dsfc.system.evaluate import evaluate as evaluate_system


def near(got: np.ndarray, want: np.ndarray) -> None:
    assert got.shape == want.shape
    scale = max(1.0, np.abs(want).max(initial=0))
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-12 * scale)


def check(spec, length: int) -> None:
    material = draw(spec, length)
    for initial in ({}, material.initial):
        want = evaluate_system(
            spec.computed, material.inputs, material.tensors, material.sizes, initial
        )
        got = evaluate(spec.plan, material.inputs, material.tensors, material.sizes, initial)
        near(got.arrays[spec.plan.output], want.outputs[spec.plan.result])
        for s in spec.plan.states:
            near(got.finals[s.name], want.finals[s.name])


@pytest.mark.share(8)
@pytest.mark.parametrize("length", [0, 1, 5])
@pytest.mark.parametrize("name", PLANNED)
def test_shipped_plans_compute_their_systems(name: str, length: int, shipped) -> None:
    check(shipped(name), length)


@pytest.mark.share(5, ci=20)
@pytest.mark.parametrize("name", thirds((), pytest.mark.ci))
def test_unusual_plans_compute_their_systems(name: str, load) -> None:
    check(load(name, COMPILED[name]), 4)
