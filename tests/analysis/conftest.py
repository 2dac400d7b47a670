"""Mixers at points, from a text or a shipped spec."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from dsfc.analysis.point import Point, start
from dsfc.api.locate import Place
from dsfc.api.pipeline import Compilation, SpecText, load
from dsfc.source import Source
from dsfc.syntax.parse import parse


@dataclass(frozen=True)
class At:
    """A mixer at a point."""

    it: Compilation
    point: Point

    @property
    def system(self):
        return self.it.system

    @property
    def structure(self):
        return self.it.structure

    def param(self, name: str) -> np.ndarray:
        return self.point.params[name]

    def u(self) -> np.ndarray:
        return self.point.inputs["u"]


@pytest.fixture(scope="session")
def at() -> Callable[..., At]:
    """`at(spec, tokens, params, **sizes)`: a shipped spec or a text, as it starts."""

    def make(
        spec: str, tokens: int = 8, params: Mapping[str, np.ndarray] | None = None, **sizes: int
    ) -> At:
        if "{" in spec:
            text = SpecText(Place(Path("text.dsf")), parse(Source("<text>", spec)))
            it = text.compilation()
        else:
            it = load(spec)
        point = start(it.mixer, it.system, tokens, sizes)
        return At(it, Point(point.sizes, point.inputs, {**point.params, **(params or {})}))

    return make
