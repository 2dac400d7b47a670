"""Calls of emitted modules whose inputs lie in a box, beside the definition in float64."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import dsfc
from dsfc.rounding.analyse import Call
from dsfc.rounding.enclosure import between
from dsfc.validate.surface import Surface, surface

CHUNK = 8


@dataclass(frozen=True)
class Case:
    """A module, its values in a dtype, and a box of inputs.

    Attributes:
        face: the module.
        values: tensors of the functional form by name, inputs of one point of the box among them.
        radius: no entry of an input is larger; those declared in (0, 1) lie there.
    """

    face: Surface
    values: Mapping[str, Any]
    radius: float

    def options(self, mode: str) -> dict[str, Any]:
        chunked = "chunk" in inspect.signature(self.face.functional).parameters
        return {"mode": mode, "chunk": CHUNK} if chunked else {"mode": mode}

    def call(self, mode: str, point: Mapping[str, Tensor] | None = None) -> Call:
        """A call at a point; on the whole box where none is given."""
        values = {**self.values, **(point or {})}
        if point is None:
            for name in self.face.inputs:
                x = values[name]
                high = torch.full(x.shape, self.radius, dtype=torch.float64)
                low = torch.zeros_like(high) if name in self.face.unit else -high
                values[name] = between(low, high, x.dtype)
        return Call(self.face.module, self.face.functional, values, self.options(mode))

    def points(self, count: int = 4) -> Iterator[dict[str, Tensor]]:
        """All-ones, one token again and again, signs, and draws."""
        draw = torch.Generator().manual_seed(5)
        for k in range(count):
            out = {}
            for name in self.face.inputs:
                x = self.values[name]
                share = torch.rand(x.shape, generator=draw, dtype=torch.float64)
                share = (
                    torch.ones_like(share),
                    share.round(),
                    share,
                    share[:, :1].expand(x.shape),
                )[k % 4]
                low = 0.01 if name in self.face.unit else -self.radius
                out[name] = (low + (self.radius - low) * share).clamp(low, self.radius).to(x.dtype)
            yield out

    def error(self, mode: str, point: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        """The error of each output at a point, and the output itself."""
        values = {**self.values, **point}
        with torch.no_grad():
            result = self.face.functional(*values.values(), **self.options(mode))
            exact = self.face.reference({k: v for k, v in values.items() if v is not None})
        y = result[0] if isinstance(result, tuple) else result
        return (y.to(exact.dtype) - exact).abs(), y


@pytest.fixture(scope="session")
def case(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Case]:
    """A module of a shipped spec, or of a file, its parameters drawn large enough to matter."""
    folder, modules = tmp_path_factory.mktemp("rounding"), dict[str, Surface]()

    def get(
        spec: str | Path, dtype: torch.dtype = torch.float32, length: int = 11, radius: float = 1.0
    ) -> Case:
        name = str(spec)
        if name not in modules:
            path = dsfc.compile(spec, out=folder / f"m{len(modules)}.py")
            modules[name] = surface(dsfc.import_module(path))
        face = modules[name]
        sample = face.sample(length, batch=1, dtype=dtype, state=False)
        found = face.values(sample)
        values = {k: v.detach() if isinstance(v, Tensor) else v for k, v in found.items()}
        return Case(face, values, radius)

    return get
