"""How the tests of this folder get a plan, and random arrays to run it on."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import dsfc
from dsfc.diagnostics.report import DiagnosticError
from dsfc.mixer import sample, sizes
from dsfc.pipeline import Compilation
from dsfc.plan.ir import Plan

# The unusual mixers of the backend's tests are planned here too.
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "backends" / "torch")]


@dataclass(frozen=True)
class Material:
    """Random arguments of a plan, and of the System that it came from.

    Attributes:
        inputs: `[L, *axes]`.
        tensors: parameters and buffers.
        initial: states before the first token.
        sizes: of every axis.
    """

    inputs: dict[str, np.ndarray]
    tensors: dict[str, np.ndarray]
    initial: dict[str, np.ndarray]
    sizes: dict[str, int]


def draw(spec: Compilation, length: int, seed: int = 0) -> Material:
    """Returns random arguments; every axis has a small size of its own, if it may."""
    axes = [d.axis.name for d in spec.mixer.axes]
    try:
        known = sizes(spec.mixer, {name: 2 + k % 3 for k, name in enumerate(axes)})
    except DiagnosticError:  # some must be equal
        known = sizes(spec.mixer, dict.fromkeys(axes, 3))
    known = dict(known)
    for d in spec.system.axes:
        known.setdefault(d.axis.name, known[d.axis.copy_of or d.axis.name])
    drawn = sample(spec.mixer, known, seed, length)
    rng = np.random.default_rng([seed, 1])
    initial = {
        b.state: 0.5 + rng.random([known[a.name] for a in b.axes]) for b in spec.system.blocks
    }
    return Material(drawn.inputs, drawn.params, initial, known)


@pytest.fixture(scope="session")
def shipped() -> Callable[[str], Compilation]:
    """Loads a shipped spec, once."""
    return cache(dsfc.load)


@pytest.fixture(scope="session")
def load(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Compilation]:
    """Loads a mixer of a name and a body."""
    folder = tmp_path_factory.mktemp("specs")

    def make(name: str, body: str) -> Compilation:
        path = folder / f"{name}.dsf"
        path.write_text(f"mixer {name} {{\n{body}\n}}\n", encoding="utf-8")
        return dsfc.load(path)

    return make


@pytest.fixture(scope="session")
def plan_of(shipped: Callable[[str], Compilation]) -> Callable[[str], Plan]:
    """Plans a shipped spec."""
    return lambda name: shipped(name).plan
