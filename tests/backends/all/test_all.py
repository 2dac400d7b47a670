"""One module has kernels in C for CPUs and Triton's for GPUs, each as in the module of its own."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch import Tensor

import dsfc

SPECS = ("retnet", "gla", "rg_lru", "s6", "kda", "hgrn", "lru")
"""Forms with templates of kernels, with printed ones, with gates inside, and of complex states."""

SIZES = {"s6": {"n": 4}, "lru": {"n": 4}}


@pytest.fixture(scope="session")
def load(
    tmp_path_factory: pytest.TempPathFactory, own_operators: Callable[[str, str], str]
) -> Callable[[str], ModuleType]:
    folder = tmp_path_factory.mktemp("all")

    def imported(name: str) -> ModuleType:
        path = folder / f"{name}.py"
        text = own_operators(dsfc.load(name).module("all").text, "here")
        path.write_text(text, encoding="utf-8")
        return dsfc.import_module(path)

    return imported


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path_factory.getbasetemp() / "kernels"
    folder.mkdir(exist_ok=True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))


@pytest.fixture(autouse=True)
def without_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Triton's interpreter runs kernels on CPUs, in front of those in C."""
    triton = pytest.importorskip("triton")
    monkeypatch.setattr(triton.knobs.runtime, "interpret", False)


def layer_of(module: ModuleType, name: str) -> tuple[torch.nn.Module, Tensor]:
    torch.manual_seed(0)
    layer: torch.nn.Module = getattr(module, module.__all__[0])(d=16, **SIZES.get(name, {}))
    return layer, torch.randn(2, 21, 16, requires_grad=True)


def gradients(layer: torch.nn.Module, u: Tensor, mode: str) -> tuple[Tensor, ...]:
    leaves = (u, *layer.parameters())
    return torch.autograd.grad(layer(u, mode=mode).square().sum(), leaves)


@pytest.mark.share(1, ci=0)
@pytest.mark.parametrize(
    "name", ["rg_lru", *(pytest.param(n, marks=pytest.mark.ci) for n in SPECS if n != "rg_lru")]
)
def test_kernels_in_c_run_on_cpus_where_torch_would(name: str, load: Callable) -> None:
    module = load(name)
    if reason := module._NATIVE.why_never():
        pytest.skip(reason)
    layer, u = layer_of(module, name)
    torch.testing.assert_close(layer(u), layer(u, mode="recurrent"))
    for kernels, loop in zip(*(gradients(layer, u, m) for m in ("auto", "recurrent")), strict=True):
        torch.testing.assert_close(kernels, loop, rtol=1e-4, atol=1e-5)
    assert len(module._NATIVE._functions) == 2
    assert layer.explain(21).startswith("C on cpu: a kernel each way")


@pytest.mark.share(1, ci=4)
@pytest.mark.parametrize(
    "name", ["rg_lru", *(pytest.param(n, marks=pytest.mark.ci) for n in SPECS if n != "rg_lru")]
)
def test_explain_says_of_a_gpu_what_the_triton_module_says(
    name: str, load: Callable, own_operators: Callable[[str, str], str], tmp_path: Path
) -> None:
    path = tmp_path / f"{name}_alone.py"
    text = own_operators(dsfc.load(name).module("triton").text, "alone")
    path.write_text(text, encoding="utf-8")
    said = [
        layer_of(m, name)[0].explain(21, device="cuda")
        for m in (load(name), dsfc.import_module(path))
    ]
    assert said[0] == said[1]


@pytest.mark.parametrize("name", ["softmax", "short_convolution"])
def test_a_mixer_without_kernels_has_the_module_of_torch(name: str) -> None:
    assert "_NATIVE" not in dsfc.load(name).module("all").text


@pytest.mark.ci
@pytest.mark.share(1, ci=0)
@pytest.mark.parametrize("backend", ["c", "triton", "all"])
def test_no_name_of_a_module_is_given_twice(backend: str) -> None:
    for name in (*SPECS, "rwkv7", "rwkv4"):
        body = ast.parse(dsfc.load(name).module(backend).text).body
        names = Counter(n.name for n in body if isinstance(n, ast.FunctionDef | ast.ClassDef))
        assert [n for n, count in names.items() if count > 1] == []


@pytest.mark.ci
def test_without_a_compiler_torch_runs_and_says_why(
    load: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DSFC_C", "0")
    layer, u = layer_of(load("s6"), "s6")
    assert "DSFC_C=0" in layer.explain(21)
    assert torch.isfinite(layer(u)).all()
