"""Kernels of unusual mixers compute the definition, in Triton's interpreter."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest
import torch
from interpreted import widened
from ratios import SPECS as RATIOS
from unusual_specs import COMPILED

from dsfc.validate import values
from dsfc.validate.compare import agree
from dsfc.validate.surface import surface

pytest.importorskip("triton")
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

BODIES = COMPILED | {f"ratio_{name}": body for name, body in RATIOS.items()}
LENGTHS = (0, 1, 13)


@pytest.mark.ci
@pytest.mark.share(1, ci=187)
@pytest.mark.parametrize("name", BODIES)
def test_kernels_are_the_definition(name: str, build: Callable[..., ModuleType]) -> None:
    module = build(name, BODIES[name])
    if not hasattr(module, "DEVICES"):
        # Convolutions, full matrices, loops over tokens and pairs run in torch on GPUs, too.
        pytest.skip("no scan of it has kernels")
    found = surface(module)
    for length in LENGTHS:
        sample = found.sample(length, dtype=torch.float32)
        want = values.outcome(found, widened(sample, found), "recurrent", 1)
        agree(values.outcome(found, sample, "auto", 1), want, 1e-5, f"{length} tokens")
