"""A layer's mixer, whose maps are `nn.Linear`s, is the mixer as its spec writes it: every spec."""

from __future__ import annotations

import inspect
from pathlib import Path
from types import ModuleType
from typing import Any

import emitted
import pytest
import torch

import dsfc
from dsfc.diagnostics.report import DiagnosticError
from dsfc.validate.report import Outcome
from dsfc.validate.surface import surface

REFUSED = ("generalized_attn",)
"""Specs with an input that no linear map gives."""


@pytest.fixture
def layered(name: str, tmp_path: Path) -> ModuleType:
    return dsfc.import_module(dsfc.compile(name, out=tmp_path / f"{name}_layer.py", layer=True))


@pytest.mark.parametrize("name", [n for n in emitted.compiled() if n not in REFUSED])
@pytest.mark.share(24, ci=6)
def test_maps_and_mixer_of_a_layer_are_the_mixer(module: ModuleType, layered: ModuleType) -> None:
    """Values and gradients agree in float64 to rounding, and each holds the other's weights."""
    found = surface(module)
    (input_name,) = found.inputs
    sizes = dict(found.sizes)
    width = found.inputs[input_name][-1]
    cls = getattr(layered, f"{found.cls.__name__}Layer")
    given = {n: sizes[n] for n in inspect.signature(cls).parameters if n in sizes and n != "d"}
    torch.manual_seed(0)
    mixer = found.cls(**sizes, dtype=torch.float64)
    layer = cls(width, **given, norm=None, gate=None, dtype=torch.float64)
    weights = layer.mixer_weights()
    assert {n: x.shape for n, x in weights.items()} == {
        n: x.shape for n, x in mixer.state_dict().items()
    }
    mixer.load_state_dict(weights)
    u = torch.rand(2, 5, width, dtype=torch.float64)
    plain, whole = u.clone().requires_grad_(), u.clone().requires_grad_()
    y, wanted = layer(whole), layer._after(plain, mixer(plain))
    torch.testing.assert_close(y, wanted)
    (grad,) = torch.autograd.grad(y.square().sum(), whole)
    (wanted_grad,) = torch.autograd.grad(wanted.square().sum(), plain)
    torch.testing.assert_close(grad, wanted_grad)
    mixer.reset_parameters()
    layer.load_mixer_weights(mixer.state_dict())
    torch.testing.assert_close(layer(u), layer._after(u, mixer(u)))
    if found.causal:
        first, state = layer(u[:, :2], return_state=True)
        token, state = layer.step(u[:, 2], state)
        rest = layer(u[:, 3:], state)
        torch.testing.assert_close(torch.cat((first, token.unsqueeze(1), rest), 1), layer(u))


@pytest.mark.parametrize("name", REFUSED)
def test_a_mixer_with_an_input_of_a_kind_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(DiagnosticError, match="E-LAYER"):
        dsfc.compile(name, out=tmp_path / "refused.py", layer=True)


@pytest.mark.ci
@pytest.mark.parametrize(
    "options",
    [{"layer": True}, {"context_parallel": True}, {"runtime": "beside"}],
    ids=lambda options: next(iter(options)),
)
def test_verify_knows_what_a_module_was_asked_to_be(
    options: dict[str, Any], tmp_path: Path
) -> None:
    path = dsfc.compile("linear_attn", out=tmp_path / "linear_attn.py", **options)
    report = dsfc.verify(path, fast=True)
    (origin,) = (row for row in report.rows if row.name == "origin")
    assert "byte for byte" in origin.figure
    assert all(row.outcome is not Outcome.BROKEN for row in report.rows)
