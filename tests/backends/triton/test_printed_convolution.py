"""Convolutions with keys, whose kernels are printed, in the interpreter: values, states, masks."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from interpreted import spoil_kernels, widened
from kernel_specs import TOEPLITZ
from printed import run
from test_kernels import ROUNDED, agree_with_the_loop_on_packs
from tiling import tiled

import dsfc
from dsfc.kernel_ir.interpret import interpret, value_of
from dsfc.kernel_ir.ir import Access
from dsfc.kernels.toeplitz import backward, forward
from dsfc.plan.scan_ir import Scan
from dsfc.validate import precision
from dsfc.validate.compare import agree
from dsfc.validate.surface import surface
from dsfc.validate.values import outcome

pytest.importorskip("triton")
# What a kernel computes of places beyond the end is never stored, but NumPy speaks of it.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

Build = Callable[..., ModuleType]
TILE = (16, 16, 1, 1)
"""The shortest chunks that there are."""
SIZES = {"G": 2, "B": 17, "C": 2, "N": 5, "BT": 16, "T": 16, "CHUNKS": 4, "PAD": 9}
SIZES |= {"SPAN": 2, "SPANS": 2}


@pytest.fixture(params=TOEPLITZ)
def module(request: pytest.FixtureRequest, build: Build) -> ModuleType:
    """A module with printed kernels: of a complex state, a real one, complex values."""
    return build(request.param)


@pytest.mark.ci
@pytest.mark.share(1, ci=0)
@pytest.mark.parametrize("spec", ["s4d", "mega_ema"])
@pytest.mark.parametrize("strong", [False, True])
def test_kernels_are_those_of_the_ir(spec: str, strong: bool, tmp_path: Path) -> None:
    plan = dsfc.load(spec).plan
    scan = next(k for k in plan.kernels if isinstance(k, Scan))
    adjoint = next(a for a in plan.adjoints if a.scan == scan.name)
    draw = np.random.default_rng(0)
    for kernel in (forward(scan, False), backward(scan, adjoint, False)):
        given = {}
        for a in kernel.arguments:
            if a.access is Access.READ:
                given[a.name] = draw.normal(size=[value_of(s, SIZES) for s in a.shape])
        given["size"] = -np.abs(given["size"])
        if strong:
            given["size"][:, 0] = -1e30
        given["ramp"] = np.maximum(np.arange(33.0) - 16, 0)
        # What lies in front of the first token is 0.
        for name in {"v", "do"} & given.keys():
            given[name][..., 0, : SIZES["PAD"]] = 0
        if "turn" in given:
            given["turn"] = np.round(given["turn"] * 2**14) / 2**14
            given["turn_rest"] = given["turn_rest"] * 2**-16
        want = interpret(kernel, given, SIZES)
        for name, x in run(kernel, tmp_path, given, SIZES, tiles=frozenset({"BT", "T"})).items():
            assert np.isfinite(want[name]).all()
            bar = 3e-6 * float(np.abs(want[name]).max())
            assert np.abs(x - want[name]).max() <= bar, name


@pytest.mark.ci
@pytest.mark.share(1, ci=0)
@pytest.mark.parametrize("length", [1, 16, 37])
def test_kernels_are_the_definition_from_a_state(
    length: int, module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one call and, of several tokens, a second one of one token."""
    found = surface(module)
    seen = tiled(module, TILE, monkeypatch)
    sample = found.sample(length, dtype=torch.float32)
    want = outcome(found, widened(sample, found), "recurrent", 1)
    cuts = (length - 1,) if length > 1 else ()
    agree(outcome(found, sample, "auto", 1, cuts=cuts), want, ROUNDED, "cut")
    assert {"forward", "backward"} <= set(seen)


@pytest.mark.full
def test_tiles_of_the_table_and_many_rows(build: Build) -> None:
    found = surface(build("s4d"))
    sample = found.sample(70, batch=18, dtype=torch.float32)
    want = outcome(found, widened(sample, found), "recurrent", 1)
    agree(outcome(found, sample, "auto", 1), want, ROUNDED, "rows")


@pytest.mark.full
def test_many_tokens(build: Build) -> None:
    found = surface(build("s4d"))
    sample = found.sample(1000, batch=1, dtype=torch.float32)
    want = outcome(found, widened(sample, found), "chunked", 64)
    agree(outcome(found, sample, "auto", 1), want, 3 * ROUNDED, "1,000 tokens")


@pytest.mark.ci
@pytest.mark.share(1, ci=6)
@pytest.mark.parametrize("how", ["mask", "cu_seqlens"])
def test_masked_tokens_and_packs(
    module: ModuleType, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = surface(module)
    seen = tiled(module, TILE, monkeypatch)
    agree_with_the_loop_on_packs(found, how)
    assert "backward" in seen


@pytest.mark.full
def test_bfloat16_errs_no_more_than_plain_torch(module: ModuleType) -> None:
    precision.low_precision(surface(module), (torch.bfloat16,))


@pytest.mark.ci
def test_bfloat16_is_the_definition_to_its_own_rounding(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = surface(build("s4d"))
    seen = tiled(found.module, TILE, monkeypatch)
    sample = found.sample(37, dtype=torch.bfloat16)
    want = outcome(found, widened(sample, found), "recurrent", 1)
    plain = agree(outcome(found, sample, "recurrent", 1), want, math.inf, "plain")
    agree(outcome(found, sample, "auto", 1), want, 2 * plain, "kernels")
    assert {"forward", "backward"} <= set(seen)


@pytest.mark.ci
@pytest.mark.share(1, ci=2)
@pytest.mark.parametrize("spec", ["s4d", "dlr_prod"])
def test_a_trial_finds_kernels_that_are_wrong(
    spec: str, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, key = build(spec), (torch.device("cpu"), torch.float32)
    monkeypatch.setattr(module, "DEVICES", ("cuda", "cpu"))
    assert module.trial(*key) == ""
    spoil_kernels(monkeypatch, "backward")
    assert "was off by" in module.trial(*key)


def test_explain_names_the_kernels_and_why_there_are_none(build: Build) -> None:
    layer = surface(build("s4d")).sample(3).layer
    assert "Triton on cpu: a kernel each way for x" in layer.float().explain(18)
    assert "Triton on cpu" in layer.explain(18, packed=True)
    assert "torch on cpu (mode fft was named)" in layer.explain(18, mode="fft")
    assert "torch on cpu (no kernel computes in" in layer.double().explain(18)
    layer = build("s4d").S4d(d=2, n=65)
    said = "torch on cpu (kernels of this convolution have at most 64 keys, not 65)"
    assert said in layer.explain(18)
    layer = build("dlr_prod").DlrProd(d=2, n=5)
    assert "at most 16 keys, not 25" in layer.explain(18)


def test_states_of_more_numbers_run_in_torch(build: Build) -> None:
    module = build("s4d")
    layer = module.S4d(d=2, n=65)
    x = torch.randn(1, 9, 2)
    torch.testing.assert_close(layer(x), layer(x, mode="recurrent"), rtol=1e-4, atol=1e-5)
