"""The laws of transforms on random Systems over every node kind."""

from __future__ import annotations

import pytest
import torch
from draws import by_definition, draw
from gradients import check
from random_systems import SIZES, kinds_of, random_system
from torch_system import run

COUNT = {"fast": 60, "ci": 60, "full": 2000}
SHARES = 4
EVERY = {
    *("Add", "Div", "Fir", "Map", "Mul", "Param", "Pow", "Prim", "Reduce", "Ref", "Rename"),
    *("Series", "Past", "Lag", "Term", "Drive", "Factor", "Block", "Stage", "Read", "Direct"),
    *("Cache", "Gate", "Product", "Ratio", "Guard", "Cast", "Sum", "MapOut", "Post", "SumOver"),
}


def test_every_node_kind_occurs():
    found = set()
    for seed in range(COUNT["fast"]):
        kinds_of(random_system(seed), found)
    assert found >= EVERY


@pytest.mark.parametrize(
    "share",
    [
        0,
        pytest.param(1, marks=pytest.mark.ci),
        *(pytest.param(k, marks=pytest.mark.full) for k in range(2, SHARES)),
    ],
)
def test_evaluation_and_adjoint(share, tier):
    for seed in range(share, COUNT[tier], SHARES):
        system = random_system(seed)
        values, initial = draw(system, 3, SIZES, torch.Generator().manual_seed(seed))
        want, got = (f(system, 3, SIZES, values, initial) for f in (run, by_definition))
        scale = max(1.0, want[0]["y"].abs().max().item())
        assert (want[0]["y"] - got[0]["y"]).abs().max() <= 1e-11 * scale, seed
        check(system, 3, SIZES, seed, by_definition)
