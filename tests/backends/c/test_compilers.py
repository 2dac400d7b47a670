"""Compilers other than this machine's: clang, and clang without the library of OpenMP."""

from __future__ import annotations

import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest
import torch

import dsfc

CLANG = {
    "clang": shutil.which("clang"),
    "zig": f"{sys.executable} -m ziglang cc" if find_spec("ziglang") else None,
}
"""Commands; the package `ziglang` is a clang without the library of OpenMP."""


@pytest.fixture(params=CLANG)
def compiler(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> str:
    command = CLANG[request.param]
    if command is None:
        pytest.skip(f"{request.param} is not installed")
    monkeypatch.setenv("DSFC_CC", command)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return command


def module_of(name: str, folder: Path) -> ModuleType:
    path = folder / f"{name}.py"
    path.write_text(dsfc.load(name).module("c").text, encoding="utf-8")
    return dsfc.import_module(path)


@pytest.mark.ci
@pytest.mark.parametrize("name", ["rg_lru", "gla"])
def test_kernels_of_clang_are_the_loop_over_time(name: str, compiler: str, tmp_path: Path) -> None:
    module = module_of(name, tmp_path)
    torch.manual_seed(0)
    layer = getattr(module, module.__all__[0])(d=32, dtype=torch.float64)
    u = torch.randn(2, 37, 32, dtype=torch.float64, requires_grad=True)
    leaves = (u, *layer.parameters())
    both = (
        torch.autograd.grad(layer(u, mode=mode).square().sum(), leaves)
        for mode in ("auto", "recurrent")
    )
    for kernels, loop in zip(*both, strict=True):
        torch.testing.assert_close(kernels, loop)
    assert module._NATIVE.why_never() == ""
    assert len(module._NATIVE._functions) == 2
