"""Modules whose operators run kernels in C are their oracles, forwards and backwards."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import torch
from dsfc.backends.c import BACKEND
from dsfc.backends.c.printer import print_kernel
from dsfc.backends.c.reserved_names import header
from dsfc.backends.c.skeletons import scans_with_kernels
from emitted import SPECS, Beside, compiled, in_c
from torch import Tensor

import dsfc
from dsfc.validate.compare import EXACT, agree

FIRST = ("retnet", "kda", "rg_lru", "s6", "s4d")
"""Specs whose kernels hold all that the printer prints: products, triangular solves, both scans."""

FORMS = (*FIRST, "gla", "deltanet", "rwkv7", "hgrn", "mamba3", "gateloop")
"""One spec of each form with kernels, one of complex numbers, and one of each form that rotates."""

LENGTHS = (0, 1, 17, 33)
"""None, one, one more than a chunk of keys, one more than a chunk of heads."""


def modules() -> list[object]:
    rest = [pytest.param(n, marks=pytest.mark.ci) for n in in_c() if n not in FIRST]
    return [*FIRST, *rest]


def forms() -> list[object]:
    rest = [pytest.param(n, marks=pytest.mark.ci) for n in FORMS if n not in FIRST]
    return [*FIRST, *rest]


@pytest.fixture(scope="session")
def load_c(
    tmp_path_factory: pytest.TempPathFactory, own_operators: Callable[[str, str], str]
) -> Callable[[str], ModuleType]:
    folder = tmp_path_factory.getbasetemp() / "in_c"
    folder.mkdir(exist_ok=True)

    def imported(name: str) -> ModuleType:
        text = own_operators(dsfc.load(SPECS / f"{name}.dsf").module("c").text, "in_c")
        path = folder / f"{name}_c.py"
        path.write_text(text, encoding="utf-8")
        return dsfc.import_module(path)

    return imported


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for compiled kernels that all tests of a process share."""
    folder = tmp_path_factory.getbasetemp() / "kernels"
    folder.mkdir(exist_ok=True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder


@pytest.fixture
def beside_c(
    name: str, load_c: Callable[[str], ModuleType], oracle: Callable[[str], ModuleType]
) -> Beside:
    module = load_c(name)
    if reason := module._NATIVE.why_never():
        pytest.skip(reason)
    return Beside(module, oracle(name))


@pytest.mark.ci
@pytest.mark.share(1, ci=7)
@pytest.mark.parametrize("name", compiled())
def test_specs_with_kernels_are_those_listed(name: str) -> None:
    loaded = dsfc.load(SPECS / f"{name}.dsf")
    assert (name in in_c()) == bool(scans_with_kernels(loaded.fused("c")))


def test_a_spec_of_each_form_has_kernels() -> None:
    assert set(FORMS) <= set(in_c())


@pytest.mark.share(3)
@pytest.mark.parametrize("name", forms())
def test_a_module_holds_the_texts_that_the_target_prints(
    name: str, load_c: Callable[[str], ModuleType]
) -> None:
    module = load_c(name)
    printed = [
        print_kernel(k) for k in BACKEND.kernels(dsfc.load(SPECS / f"{name}.dsf").fused("c"))
    ]
    assert [*module._KERNELS.values()] == printed
    assert header() == module._HEADER


@pytest.mark.share(5, ci=87)
@pytest.mark.parametrize("name", modules())
def test_kernels_are_the_oracle(beside_c: Beside) -> None:
    for length in LENGTHS:
        given = beside_c.draw(length, 2)
        agree(beside_c.ran(given, "auto", 4), beside_c.judged(given), EXACT, f"L = {length}")
    assert beside_c.module._NATIVE.why_never() == ""
    assert beside_c.module._NATIVE._functions, "no kernel ran"


@pytest.mark.share(5, ci=87)
@pytest.mark.parametrize("name", modules())
def test_kernels_go_on_from_a_state(beside_c: Beside) -> None:
    if not getattr(beside_c.module, "CAUSAL", True):
        pytest.skip("it reads tokens to come; the promise `segments` holds that it says so")
    given = beside_c.draw(37, 2)
    want = beside_c.judged(given)
    agree(beside_c.ran(given, "auto", 4, cuts=(1, 20)), want, EXACT, "cut at 1 and 20")
    if beside_c.states:
        want = beside_c.judged(given, start=True)
        agree(beside_c.ran(given, "auto", 4, start=True), want, EXACT, "from a state")


@pytest.mark.share(2)
@pytest.mark.parametrize("name", forms())
def test_without_a_compiler_torch_runs_and_says_why(
    name: str, load_c: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DSFC_C", "0")
    module = load_c(name)
    before = set(module._NATIVE._functions)
    layer, u = layer_of(module)
    assert "DSFC_C=0" in layer.explain(u.shape[1])
    assert torch.isfinite(layer(u)).all()
    assert set(module._NATIVE._functions) == before


@pytest.mark.share(2)
@pytest.mark.parametrize("name", forms())
def test_explain_names_the_kernels_of_a_cpu_and_of_no_other_device(
    name: str, load_c: Callable[[str], ModuleType]
) -> None:
    layer, u = layer_of(load_c(name))
    assert layer.explain(u.shape[1]).startswith("C on cpu")
    assert "kernels in C run on CPUs" in layer.explain(u.shape[1], device="cuda")
    assert "mode recurrent has no kernel in C" in layer.explain(u.shape[1], mode="recurrent")


@pytest.mark.ci
@pytest.mark.share(1, ci=13)
@pytest.mark.parametrize("name", FORMS)
def test_bfloat16_is_as_near_as_in_torch(name: str, load_c: Callable[[str], ModuleType]) -> None:
    layer, u = layer_of(load_c(name))
    want = layer(u)
    narrow, x = layer.to(torch.bfloat16), u.bfloat16()
    scale = want.abs().max()
    with torch.no_grad():
        kernels = (narrow(x).double() - want).abs().max() / scale
        torch_form = (narrow(x, mode="recurrent").double() - want).abs().max() / scale
    assert kernels <= 1.5 * torch_form + 2**-8


@pytest.mark.ci
@pytest.mark.share(1, ci=2)
@pytest.mark.parametrize("name", ["retnet", "rg_lru"])
def test_operators_stand_in_a_compiled_graph(
    name: str, load_c: Callable[[str], ModuleType]
) -> None:
    layer, u = layer_of(load_c(name))
    compiled_layer = torch.compile(layer, fullgraph=True)
    torch.testing.assert_close(compiled_layer(u), layer(u))


def asked(cls: type, size: str) -> bool:
    """Whether a layer must be told a size."""
    parameter = inspect.signature(cls).parameters.get(size)
    return parameter is not None and parameter.default is parameter.empty


def layer_of(module: ModuleType) -> tuple[torch.nn.Module, Tensor]:
    """A small layer in float64, and an input of it."""
    (cls,) = (
        getattr(module, n)
        for n in module.__all__
        if n != "State" and isinstance(getattr(module, n), type)
    )
    torch.manual_seed(0)
    sizes = {n: 4 for n in ("n", "m", "r") if asked(cls, n)}
    layer = cls(d=16, **sizes, dtype=torch.float64)
    return layer, torch.randn(2, 21, 16, dtype=torch.float64)
