"""Kernels of ratios over a running maximum are right at weights of any size."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest
import torch
from ratios import SPECS, drawn, judged, layer, off, ran

pytest.importorskip("triton")


@pytest.mark.share(2, ci=0)
@pytest.mark.parametrize(
    "scale", [1e4, *(pytest.param(s, marks=pytest.mark.ci) for s in (1.0, 100.0))]
)
@pytest.mark.parametrize("name", ["mlstm", "rwkv4"])
def test_weights_of_any_size_are_right(
    name: str, scale: float, build: Callable[..., ModuleType]
) -> None:
    made = layer(build(f"ratio_{name}", SPECS[name]), name, torch.float32)
    inputs = drawn(name, scale, torch.float32)
    error, slope = off(ran(made, inputs, mode="chunked"), judged(name, inputs))
    assert error <= 3e-5 and slope <= 2e-4


def test_a_decay_per_key_has_kernels_that_hold_at_large_weights(
    build: Callable[..., ModuleType],
) -> None:
    made = layer(build("ratio_lln", SPECS["lln"]), "lln", torch.float32)
    said = made.explain(64)
    assert said.startswith("Triton on cpu")
    inputs = drawn("lln", 1e4, torch.float32)
    error, slope = off(ran(made, inputs, mode="chunked"), judged("lln", inputs))
    assert error <= 3e-5 and slope <= 2e-4
