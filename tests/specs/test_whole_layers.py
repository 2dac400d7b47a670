"""A layer's mixer, whose maps are `nn.Linear`s, is the mixer as its spec writes it: every spec."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import emitted
import pytest
from whole_layers import is_its_mixer

import dsfc
from dsfc.diagnostics.report import DiagnosticError
from dsfc.validate.report import Outcome

REFUSED = ("generalized_attn",)
"""Specs with an input that no linear map gives."""


@pytest.fixture
def layered(name: str, tmp_path: Path) -> ModuleType:
    return dsfc.import_module(dsfc.compile(name, out=tmp_path / f"{name}_layer.py", layer=True))


@pytest.mark.share(24, ci=18)
@pytest.mark.parametrize("name", [n for n in emitted.compiled() if n not in REFUSED])
def test_maps_and_mixer_of_a_layer_are_the_mixer(module: ModuleType, layered: ModuleType) -> None:
    is_its_mixer(module, layered)


@pytest.mark.parametrize("name", REFUSED)
def test_a_mixer_with_an_input_of_a_kind_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(DiagnosticError, match="E-LAYER"):
        dsfc.compile(name, out=tmp_path / "refused.py", layer=True)


@pytest.mark.ci
@pytest.mark.share(1, ci=9)
@pytest.mark.parametrize(
    "options",
    [
        {"layer": True},
        {"context_parallel": True, "backend": "all"},
        {"tensor_parallel": True, "layer": True},
        {"runtime": "beside"},
    ],
    ids=lambda options: next(iter(options)),
)
def test_verify_knows_what_a_module_was_asked_to_be(
    options: dict[str, Any], tmp_path: Path
) -> None:
    path = dsfc.compile("linear_attn", out=tmp_path / "linear_attn.py", **options)
    report = dsfc.verify(path, fast=True)
    (origin,) = (row for row in report.rows if row.name == "origin")
    assert any(row.name == "layer" for row in report.rows) == ("layer" in options)
    assert "byte for byte" in origin.figure
    assert all(row.outcome is not Outcome.BROKEN for row in report.rows)
