"""Layers that flash-linear-attention calls are the layers of their mixers: every causal spec."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import emitted
import pytest
from fla_layers import is_the_layer

import dsfc
from dsfc.diagnostics.report import DiagnosticError

REFUSED = {"generalized_attn": "E-LAYER", "dlr_bidirectional": "E-STEP"}
"""Specs without a layer, or with outputs that need tokens to come."""


@pytest.mark.parametrize("name", [n for n in emitted.compiled() if n not in REFUSED])
@pytest.mark.share(24, ci=6)
def test_what_fla_calls_is_the_layer(name: str, tmp_path: Path) -> None:
    path = dsfc.compile(name, out=tmp_path / f"{name}_fla.py", layer=True, signature="fla")
    is_the_layer(dsfc.import_module(path))


@pytest.mark.parametrize(("name", "code"), REFUSED.items())
def test_what_no_cache_can_hold_is_refused_where_it_stands(
    name: str, code: str, tmp_path: Path
) -> None:
    with pytest.raises(DiagnosticError) as raised:
        dsfc.compile(name, out=tmp_path / "refused.py", layer=True, signature="fla")
    (problem,) = raised.value.diagnostics
    assert problem.code == code and problem.span.line > 1
    assert not (tmp_path / "refused.py").exists()


@pytest.mark.ci
@pytest.mark.share(1, ci=2)
@pytest.mark.parametrize(
    "options",
    [{"runtime": "beside", "tensor_parallel": True}, {"backend": "c"}],
    ids=["beside", "c"],
)
def test_other_options_change_nothing(
    options: dict[str, Any], tmp_path: Path, own_cache: None
) -> None:
    path = dsfc.compile("mlstm", out=tmp_path, layer=True, signature="fla", **options)
    is_the_layer(dsfc.import_module(path))
