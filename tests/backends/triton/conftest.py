"""Compiles specs for Triton and gives their modules, whose kernels the interpreter then runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import dsfc
from dsfc.validate.run import settled

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


@pytest.fixture(autouse=True)
def fresh_memory_is_nan() -> Iterator[None]:
    """What is not written before it is read is NaN."""
    torch.set_num_threads(1)
    with settled():
        yield


@pytest.fixture(autouse=True)
def rounds_as_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds float32 to the nearest bfloat16; Triton's interpreter cuts, all errors one way."""
    if find_spec("triton") is None:
        return
    import triton.language as tl
    from triton.runtime import interpreter

    convert = interpreter._convert_float

    def converted(x: Any, given: Any, wanted: Any, mode: Any) -> Any:
        kinds = {tl.float32: torch.float32, tl.bfloat16: torch.bfloat16}
        if {given, wanted} != set(kinds):
            return convert(x, given, wanted, mode)
        bits = {tl.float32: np.int32, tl.bfloat16: np.int16}
        held = torch.from_numpy(np.array(x).view(bits[given])).view(kinds[given])
        out = held.to(kinds[wanted]).view(getattr(torch, bits[wanted].__name__))
        return out.numpy().view(f"uint{wanted.primitive_bitwidth}")

    monkeypatch.setattr(interpreter, "_convert_float", converted)


@pytest.fixture
def traffic(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What the interpreter has moved and computed so far."""
    from traffic import counting

    return counting(monkeypatch)


@pytest.fixture(autouse=True)
def language_is_patched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Triton's interpreter patches its language for every call inside a kernel, again each time."""
    if find_spec("triton") is None:
        return
    import triton.language as tl
    from triton.runtime import interpreter

    patch = interpreter._patch_lang

    def patched(function: Any) -> Any:
        known = [x for x in function.__globals__.values() if x is tl or x is tl.core]
        if all(getattr(x.static_range, "__name__", "") == "_new_range" for x in known):
            return SimpleNamespace(restore=lambda: None)
        return patch(function)

    monkeypatch.setattr(interpreter, "_patch_lang", patched)
