"""Modules whose kernels are printed, in the interpreter: values, states, masks, bfloat16."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import ModuleType

import pytest
import torch
from interpreted import spoil_kernels
from kernel_specs import PRINTED, ROTATING
from test_kernels import ROUNDED, agree_with_the_loop_on_packs, small, widened

from dsfc.validate import precision
from dsfc.validate.compare import agree
from dsfc.validate.surface import surface
from dsfc.validate.values import outcome

pytest.importorskip("triton")
# What a kernel computes of places beyond the end is never stored, but NumPy speaks of it.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

Build = Callable[..., ModuleType]
LENGTH = 70
"""Two chunks, the second one cut off."""


@pytest.fixture(params=[*PRINTED, *ROTATING])
def module(request: pytest.FixtureRequest, build: Build) -> ModuleType:
    """A module with printed kernels."""
    return build(request.param)


@pytest.mark.ci
@pytest.mark.share(1, ci=0)
def test_kernels_are_the_definition_from_a_state(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one call of two chunks, and a second one of one token."""
    found = surface(module)
    seen = small(module, monkeypatch)
    sample = found.sample(LENGTH, dtype=torch.float32)
    want = outcome(found, widened(sample, found), "recurrent", 1)
    agree(outcome(found, sample, "auto", 1, cuts=(LENGTH - 1,)), want, ROUNDED, "cut")
    assert {"forward", "backward"} <= set(seen)


@pytest.mark.ci
@pytest.mark.share(1, ci=18)
@pytest.mark.parametrize("how", ["mask", "cu_seqlens"])
def test_masked_tokens_and_packs(
    module: ModuleType, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = surface(module)
    seen = small(module, monkeypatch)
    agree_with_the_loop_on_packs(found, how)
    assert "backward" in seen


@pytest.mark.full
def test_bfloat16_errs_no_more_than_plain_torch(module: ModuleType) -> None:
    precision.low_precision(surface(module), (torch.bfloat16,))


@pytest.mark.full
def test_bfloat16_is_the_definition_to_its_own_rounding(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = surface(build("kda"))
    seen = small(found.module, monkeypatch)
    sample = found.sample(LENGTH, dtype=torch.bfloat16)
    want = outcome(found, widened(sample, found), "recurrent", 1)
    plain = agree(outcome(found, sample, "recurrent", 1), want, math.inf, "plain")
    agree(outcome(found, sample, "auto", 1), want, 2 * plain, "kernels")
    assert {"forward", "backward"} <= set(seen)


@pytest.mark.full
def test_a_trial_finds_kernels_that_are_wrong(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, key = build("deltanet"), (torch.device("cpu"), torch.float32)
    monkeypatch.setattr(module, "DEVICES", ("cuda", "cpu"))
    assert module.trial(*key) == ""
    spoil_kernels(monkeypatch, "backward")
    assert "was off by" in module.trial(*key)


@pytest.mark.ci
def test_a_decay_of_nothing_and_phases_of_many_turns(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the operator, where the loop over time in double precision is the judge."""
    module = build("retnet_rope")
    seen = small(module, monkeypatch)
    torch.manual_seed(0)
    q, k = (torch.randn(1, 70, 1, 3, dtype=torch.complex64) for _ in range(2))
    S, dS = (torch.randn(1, 1, 3, 5, dtype=torch.complex64) for _ in range(2))
    v, do = (torch.randn(1, 70, 1, 5) + 0j for _ in range(2))
    size = torch.where(torch.rand(1, 70, 1, 3) < 0.1, -math.inf, -torch.rand(1, 70, 1, 3))
    given = q, k, v, torch.complex(size, 1000 * torch.randn(size.shape)), S
    wide = [x.to(torch.complex128) for x in (*given, do, dS)]
    want = module._forward_torch(*wide[:5], "recurrent", 16)
    want += module._backward_torch(*wide, "recurrent", 16)
    got = module._forward(*given, "auto", 16) + module._backward(*given, do, dS, "auto", 16)
    for at, (x, y) in enumerate(zip(got, want, strict=True)):
        # The scan reads the real part of outputs, and its values are real.
        parts = (x.real, y.real) if at in (0, 4) else (x, y)
        scale = y.abs().max().item()
        torch.testing.assert_close(*parts, rtol=0, atol=ROUNDED * scale, check_dtype=False)
    assert {"forward", "backward"} <= set(seen)


def test_explain_counts_both_planes_of_keys(build: Build) -> None:
    module = build("mamba3")
    layers = {m: module.Mamba3(d=8, h=2, m=m) for m in (128, 129)}
    assert "Triton on cpu: a kernel each way for S" in layers[128].explain(18)
    assert "at most 256 keys, not 258" in layers[129].explain(18)
    assert "Triton on cpu" in layers[128].bfloat16().explain(18)


def test_explain_names_the_kernels_and_why_there_are_none(build: Build) -> None:
    layer = surface(build("gla")).sample(3).layer
    assert "Triton on cpu: a kernel each way for S" in layer.float().explain(18)
    assert "torch on cpu (" in layer.double().explain(18)
