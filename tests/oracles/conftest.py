"""How the tests of this folder load an oracle by the name of its mixer and draw tensors for it."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch import Tensor

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def load() -> Callable[[str], ModuleType]:
    """Loads `<mixer>.py` of this folder as a module of its own."""

    def load_oracle(name: str) -> ModuleType:
        spec = importlib.util.spec_from_file_location(f"oracle_{name}", HERE / f"{name}.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load_oracle


@pytest.fixture(scope="session")
def draw() -> Callable[..., dict[str, Tensor]]:
    """Draws inputs [B, L, *axes] and parameters [*axes] of an oracle, in float64."""

    def draw_tensors(
        oracle: ModuleType,
        batch: int = 2,
        length: int = 7,
        dims: dict[str, int] | None = None,
        seed: int = 0,
        groups: tuple[str, ...] = ("inputs", "params", "buffers", "abstracts"),
    ) -> dict[str, Tensor]:
        generator = torch.Generator().manual_seed(seed)
        shapes = oracle.shapes(dims or oracle.DIMS)
        drawn = {}
        for group in groups:
            for name, axes in shapes.get(group, {}).items():
                lead = {"inputs": (batch, length), "states": (batch,), "recurrent": (batch,)}
                size = (*lead.get(group, ()), *axes)
                field = torch.complex128 if name in oracle.COMPLEX else torch.float64
                normal = 0.6 * torch.randn(size, generator=generator, dtype=field)
                uniform = torch.rand(size, generator=generator, dtype=torch.float64)
                drawn[name] = {
                    "positive": uniform + 0.3,
                    "unit": 0.1 + 0.8 * uniform,
                    "nonzero": (0.4 + uniform) * torch.where(normal.real < 0, -1.0, 1.0),
                    "": normal,
                }[oracle.CONSTRAINTS.get(name, "")]
        return drawn

    return draw_tensors
