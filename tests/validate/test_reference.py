"""Published layers are run as torch code, whatever kernels are installed."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import pytest
import torch

from dsfc.layouts.ir import Reference
from dsfc.source import NOWHERE
from dsfc.validate.reference import running, without_kernels

PUBLISHED = """
from torch import nn

try:
    import fla
except ImportError:
    fla = None


class Layer(nn.Module):
    def forward(self, u):
        return u if fla is None else fla.scan(u)
"""


@pytest.fixture
def published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module of a layer that calls a kernel of `fla` where that is installed; here it is."""
    (tmp_path / "fla.py").write_text("def scan(u):\n    raise RuntimeError('no active driver')\n")
    (tmp_path / "published_here.py").write_text(PUBLISHED)
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("fla", "published_here"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return "published_here"


@pytest.mark.parametrize("before", [False, True], ids=["first", "imported before with kernels"])
def test_a_published_layer_runs_without_kernels(published: str, before: bool) -> None:
    if before:
        assert import_module(published).fla is not None
    layer = running(Reference((published, "Layer"), None, {}, {}, {}, {}, None, NOWHERE), {}, {})
    u = torch.ones(1, 2, 3, dtype=torch.float64)
    assert torch.equal(layer(u), u)


def test_packages_of_kernels_are_there_again_afterwards(published: str) -> None:
    fla = import_module("fla")
    with without_kernels(published):
        with pytest.raises(ImportError):
            import_module("fla")
    assert sys.modules["fla"] is fla


def test_a_layer_of_such_a_package_itself_is_found(published: str) -> None:
    with without_kernels("fla"):
        assert import_module("fla").__name__ == "fla"
