"""Whole blocks of papers, convolutions, norms, gates and output maps among them, as specs."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch import Tensor, nn

import dsfc

ORACLES = Path(__file__).parents[1] / "oracles" / "blocks"
Block = tuple[nn.Module, ModuleType, tuple[str, ...]]
BLOCKS = sorted(file.stem for file in ORACLES.glob("*_block.py"))


@pytest.fixture(scope="module")
def block(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[str], Block]:
    """Returns the mixer of a block in float64, its weights at random, its oracle and its modes."""
    folder = tmp_path_factory.mktemp("blocks")

    def made(name: str) -> Block:
        spec = importlib.util.spec_from_file_location(name, ORACLES / f"{name}.py")
        assert spec is not None and spec.loader is not None
        oracle = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(oracle)
        path = folder / f"{name}.py"
        if not path.exists():
            dsfc.compile(name, out=path)
        module = dsfc.import_module(path)
        torch.manual_seed(0)
        mixer = getattr(module, module.__all__[0])(**oracle.SIZES, dtype=torch.float64)
        for p in mixer.parameters():
            nn.init.normal_(p, 0.1, 0.5)
        return mixer, oracle, module.MODES

    return made


def values(mixer: nn.Module) -> dict[str, Tensor]:
    """Parameters by their names in the spec: those that are positive are stored as logarithms."""
    return {
        name.removeprefix("log_"): p.exp() if name.startswith("log_") else p
        for name, p in mixer.named_parameters()
    }


def test_every_block_has_an_oracle(root: Path) -> None:
    assert [file.stem for file in sorted((root / "specs" / "blocks").glob("*.dsf"))] == BLOCKS


@pytest.mark.parametrize("name", BLOCKS)
@pytest.mark.share(5)
def test_a_block_is_that_of_its_paper(name: str, block: Callable[[str], Block]) -> None:
    """Values in every mode, gradients of all weights, and single tokens agree in float64."""
    mixer, oracle, modes = block(name)
    u = torch.randn(2, 7, oracle.SIZES["d"], dtype=torch.float64)
    wanted = oracle.forward(u, values(mixer))
    weights = torch.randn_like(wanted)
    gradients = torch.autograd.grad((wanted * weights).sum(), list(mixer.parameters()))
    for mode in modes:
        y = mixer(u, mode=mode, chunk=3)
        torch.testing.assert_close(y, wanted, rtol=1e-9, atol=1e-10)
        found = torch.autograd.grad((y * weights).sum(), list(mixer.parameters()))
        for a, b in zip(found, gradients, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-9)
    state = mixer.initial_state(2)
    for i in range(7):
        token, state = mixer.step(u[:, i], state)
        torch.testing.assert_close(token, wanted[:, i], rtol=1e-9, atol=1e-10)
