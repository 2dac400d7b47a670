"""Loaders of weights that guard `torch.nn.init` keep what they have loaded."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from emitted import compiled
from torch import nn

from dsfc.validate.surface import surface

LEGS = """
  dims d, n
  input u : d
  param a : d × n complex ~ cplx(normal(0, 1), ones[d] ⊗ legs_frequency[n](n))
        b : d positive ~ log_uniform(0.01, 0.5)
        c : d unit = 1/4
        e : d = (iota[d] + 1) / d
        g : d complex = 1
        w : d ~ normal(0, 1)
  buffer r : d = iota[d]
  y = u * sum[n](Re(a)) * b * c * e * Re(g) * r * w
"""


@pytest.fixture
def guarded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions of `torch.nn.init` leave tensors alone that are marked as loaded."""

    def guard(write: Callable) -> Callable:
        return lambda x, *a, **k: x if hasattr(x, "loaded") else write(x, *a, **k)

    for name, function in inspect.getmembers(nn.init, inspect.isfunction):
        if name.endswith("_") and not name.startswith("_"):
            monkeypatch.setattr(nn.init, name, guard(function))


@pytest.mark.share(12, ci=9)
@pytest.mark.usefixtures("guarded")
@pytest.mark.parametrize("name", [*compiled(), "legs"])
def test_only_what_is_missing_starts_afresh(build, name: str) -> None:
    found = surface(build(name, LEGS if name == "legs" else None).module)
    layer = found.cls(**found.sizes)
    kept = layer.state_dict()
    for missing in kept:
        marked = {n: x for n, x in layer.state_dict(keep_vars=True).items() if n != missing}
        for x in kept.values():
            x.fill_(0.125)
        for x in marked.values():
            x.loaded = True
        layer.reset_parameters()
        changed = [n for n, x in layer.state_dict().items() if not (x == 0.125).all()]
        assert changed == [missing]
        for x in marked.values():
            del x.loaded


@pytest.mark.ci
def test_transformers_keeps_loaded_weights(build, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    cls = build("legs", LEGS).module.Legs

    class Config(transformers.PretrainedConfig):
        model_type = "legs_in_a_model"

    class Model(transformers.PreTrainedModel):
        config_class = Config
        base_model_prefix = ""

        def __init__(self, config: transformers.PretrainedConfig) -> None:
            super().__init__(config)
            self.mixer = cls(d=5, n=3)
            self.post_init()

        def _init_weights(self, module: nn.Module) -> None:
            if isinstance(module, cls):
                module.reset_parameters()

    model = Model(Config())
    kept = {name: torch.full_like(x, 0.125) for name, x in model.state_dict().items()}
    del kept["mixer.log_b"]
    model.save_pretrained(tmp_path, state_dict=dict(kept))  # which empties it
    again = Model.from_pretrained(tmp_path).state_dict()
    assert len(kept) == 6
    assert all(torch.equal(again[name], x) for name, x in kept.items())
    assert torch.isfinite(again["mixer.log_b"]).all()
    assert len(again["mixer.log_b"].unique()) == 5
