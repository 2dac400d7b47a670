"""What is exported runs in a process that has neither dsfc nor the emitted module."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest
from elsewhere import MIXERS, Made, check, made

from dsfc.diagnostics.report import DiagnosticError

COMPLEX = ("lru",)


@pytest.fixture(scope="module")
def layers(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Made]:
    """Makes layers, each once."""
    folder = tmp_path_factory.mktemp("modules")
    return cache(lambda mixer: made(mixer, folder))


@pytest.mark.ci
@pytest.mark.share(14, ci=7)
@pytest.mark.parametrize("mixer", MIXERS)
def test_a_program_of_torch_export_loads_without_the_module(layers, tmp_path, mixer):
    check(layers(mixer), tmp_path, "torch", step=False)


@pytest.mark.ci
@pytest.mark.share(1, ci=14)
@pytest.mark.parametrize("mixer", MIXERS)
def test_a_step_of_torch_export_loads_without_the_module(layers, tmp_path, mixer):
    check(layers(mixer), tmp_path, "torch", step=True)


@pytest.mark.ci
@pytest.mark.share(1, ci=9)
@pytest.mark.parametrize("step", [False, True], ids=["whole", "step"])
@pytest.mark.parametrize("mixer", MIXERS)
def test_an_onnx_file_runs_without_torch(layers, tmp_path, mixer, step):
    pytest.importorskip("onnxruntime")
    if mixer in COMPLEX:
        with pytest.raises(DiagnosticError, match="complex"):
            check(layers(mixer), tmp_path, "onnx", step)
    else:
        check(layers(mixer), tmp_path, "onnx", step)


NOT_COMPILED = {"lru": "does not write it", "mlstm": "gives other numbers"}
"""What Inductor of PyTorch 2.13 refuses, or computes otherwise."""


@pytest.mark.full
@pytest.mark.parametrize("mixer", MIXERS)
def test_machine_code_loads_without_the_module(layers, tmp_path, mixer):
    for step in (False, True):
        if mixer in NOT_COMPILED:
            with pytest.raises(DiagnosticError, match=NOT_COMPILED[mixer]):
                check(layers(mixer), tmp_path, "aoti", step)
        else:
            check(layers(mixer), tmp_path, "aoti", step)
