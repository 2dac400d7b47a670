"""Compiles specs for Triton and gives their modules, whose kernels the interpreter then runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

import dsfc
from benchmarks.gpu.interpreter import as_a_gpu
from dsfc.api.pipeline import Compilation
from dsfc.plan.ir import Plan
from dsfc.validate.run import deterministic_torch

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2] / "specs")]


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., ModuleType]:
    """Compiles a mixer, once; without a body, a shipped one."""
    folder = tmp_path_factory.mktemp("triton")

    @cache
    def make(name: str, body: str | None = None, backend: str = "triton") -> ModuleType:
        spec: str | Path = name
        if body is not None:
            spec = folder / f"{name}.dsf"
            spec.write_text(f"mixer {name} {{\n{body}\n}}\n", encoding="utf-8")
        path = folder / f"{name}_{backend}.py"
        path.write_text(dsfc.load(spec).module(backend).text, encoding="utf-8")
        return dsfc.import_module(path)

    return make


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
def plan_of() -> Callable[[str], Plan]:
    """Plans a shipped spec, once."""
    return cache(lambda name: dsfc.load(name).plan)


@pytest.fixture(autouse=True)
def fresh_memory_is_nan() -> Iterator[None]:
    """What is not written before it is read is NaN."""
    torch.set_num_threads(1)
    with deterministic_torch():
        yield


@pytest.fixture(autouse=True)
def rounds_as_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Triton's interpreter is what a script without a GPU has as well."""
    if find_spec("triton") is not None:
        as_a_gpu(monkeypatch.setattr)


@pytest.fixture
def traffic(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What the interpreter has moved and computed so far."""
    from traffic import counting

    return counting(monkeypatch)
