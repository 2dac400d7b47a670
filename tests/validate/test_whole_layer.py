"""The row of a layer: it is kept by layers as they are written, and broken by wrong ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from own_inputs import OWN_INPUTS

import dsfc
from dsfc.validate import run
from dsfc.validate.report import Outcome, Row


@pytest.fixture(autouse=True)
def no_other_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "CHECKS", ())


def row(path: Path) -> Row:
    (found,) = (row for row in dsfc.verify(path, fast=True).rows if row.name == "layer")
    return found


@pytest.mark.ci
@pytest.mark.share(1, ci=2)
@pytest.mark.parametrize("name", ["gla", pytest.param("softmax", marks=pytest.mark.ci)])
def test_a_layer_is_its_spec_between_maps(name: str, tmp_path: Path) -> None:
    kept = row(dsfc.compile(name, out=tmp_path, layer=True))
    assert kept.outcome is Outcome.KEPT and "relative error" in kept.figure
    assert kept.promise.startswith("The layer is its spec between linear maps")


@pytest.mark.ci
def test_a_layer_that_maps_each_input_of_its_mixer_is_one_too(tmp_path: Path) -> None:
    spec = tmp_path / "own_inputs.dsf"
    spec.write_text(f"mixer own_inputs {{\n{OWN_INPUTS}\n}}\n", encoding="utf-8")
    kept = row(dsfc.compile(spec, out=tmp_path, layer=True))
    assert kept.outcome is Outcome.KEPT, kept.figure


@pytest.mark.full
def test_a_module_without_a_layer_has_no_such_row(tmp_path: Path) -> None:
    path = dsfc.compile("gla", out=tmp_path)
    assert [row.name for row in dsfc.verify(path, fast=True).rows] == ["origin"]


WRONG = {
    "another map": ("self.W_Q(u).reshape", "self.W_K(u).reshape", "y is off"),
    "another gate": ("F.silu(gate) if", "torch.sigmoid(gate) if", "y is off"),
    "no norm": ("y = self.norm(y.to(self.norm.weight.dtype))", "y = 1 * y", "y is off"),
    "no gradient": ("return self.out_proj(y)", "return self.out_proj(y.detach())", "gradient of"),
    "another step": ("return self._after(u, y), state\n", "return 2 * y, state\n", "step"),
    "another output map": ("return self.out_proj(y)", "return self.out_proj(y) + u", "y is off"),
    "lost weights": ("return {**weights, **self.mixer", "return {**self.mixer", "mixer_weights"),
}
"""A line of the module, what stands there instead, and what is said then."""


@pytest.mark.share(9)
@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_layer_breaks_it(what: str, tmp_path: Path) -> None:
    path = dsfc.compile("gla", out=tmp_path, layer=True)
    old, new, said = WRONG[what]
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    broken = row(path)
    assert broken.outcome is Outcome.BROKEN and said in broken.figure, broken.figure
