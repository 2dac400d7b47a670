"""Weights of a module are the parameters of its mixer, or are refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from dsfc.api.pipeline import load
from dsfc.api.trained import trained
from dsfc.diagnostics.report import DiagnosticError
from dsfc.emit.importing import import_module
from dsfc.emit.module import write
from dsfc.system.evaluate import evaluate


def _layer(name: str, folder: Path, **sizes: int):
    """The mixer, its module's file, and a layer with weights drawn anew."""
    it = load(name)
    text = it.module()
    write(text, folder / "module.py")
    module = import_module(folder / "module.py")
    layer = getattr(module, text.class_name)(**sizes, dtype=torch.float64)
    with torch.no_grad():
        for p in layer.parameters():
            p.add_(0.2 * torch.randn_like(p))
    torch.save(layer.state_dict(), folder / "w.pt")
    return it, layer


@pytest.mark.parametrize(
    ("name", "sizes"),
    [("gla", {"d": 8, "h": 2}), ("lru", {"d": 4, "n": 3}),
     pytest.param("ssd", {"d": 8, "h": 2, "n": 3}, marks=pytest.mark.ci)],
)  # fmt: skip
def test_a_system_with_trained_parameters_is_the_trained_module(
    name: str, sizes: dict[str, int], tmp_path: Path
) -> None:
    it, layer = _layer(name, tmp_path, **sizes)
    found = trained(it, tmp_path / "w.pt", tmp_path / "module.py")
    assert found.sizes | sizes == dict(found.sizes)
    u = np.random.default_rng(0).standard_normal((5, sizes["d"]))
    run = evaluate(it.system, {"u": u}, found.params, found.sizes)
    with torch.no_grad():
        y = layer(torch.from_numpy(u)[None])[0].numpy()
    np.testing.assert_allclose(run.outputs["y"].reshape(y.shape), y, atol=1e-12)


@pytest.mark.ci
def test_other_weights_are_refused(tmp_path: Path) -> None:
    it, layer = _layer("gla", tmp_path, d=8, h=2)
    weights = layer.state_dict()
    (tmp_path / "bad.pt").write_bytes(b"no weights")
    torch.save({n: w for n, w in weights.items() if n != "W_1"}, tmp_path / "less.pt")
    torch.save(weights | {"more": torch.zeros(1)}, tmp_path / "more.pt")
    torch.save({"model": weights, "epoch": 3}, tmp_path / "wrapped.pt")
    files = {
        "bad.pt": "no file of weights",
        "less.pt": "not those of the module: they lack W_1",
        "more.pt": "not those of the module: they have more",
        "none.pt": "cannot be read",
        "wrapped.pt": r"save checkpoint\['model'\] by itself",
    }
    for file, said in files.items():
        with pytest.raises(DiagnosticError, match=said) as raised:
            trained(it, tmp_path / file, tmp_path / "module.py")
        assert [d.code for d in raised.value.diagnostics] == ["E-REPORT"]


def test_the_module_of_another_mixer_is_refused(tmp_path: Path) -> None:
    _layer("retnet", tmp_path, d=8, h=2)
    with pytest.raises(DiagnosticError, match="E-REPORT"):
        trained(load("gla"), tmp_path / "w.pt", tmp_path / "module.py")
