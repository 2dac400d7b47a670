"""Layers with complex states or coefficients run in ONNX Runtime, two real numbers for each."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from elsewhere import CLOSE, Case, layer_of, outcome
from torch import Tensor, nn

import dsfc
from dsfc.programs.program import program
from dsfc.programs.real_form import real_form
from dsfc.programs.token_loop import NoProgram

COMPLEX_STATES = (
    "lru", "dlr", "dlr_kronecker", "dlr_prod", "dss_exp", "gateloop", "h3", "hgrn", "mamba3",
    "retnet_rope", "s4", "s4d",
)  # fmt: skip


@pytest.mark.ci
@pytest.mark.share(1, ci=24)
@pytest.mark.parametrize("step", [False, True], ids=["whole", "step"])
@pytest.mark.parametrize("mixer", COMPLEX_STATES)
def test_a_complex_state_is_a_last_axis_of_two(mixer: str, step: bool, tmp_path: Path) -> None:
    """The file runs beside the layer, in a process that has neither torch nor dsfc too."""
    onnxruntime = pytest.importorskip("onnxruntime")
    came = outcome(Case(mixer, "onnx", step), tmp_path)
    assert came["error"] < CLOSE, came
    loaded = onnxruntime.InferenceSession(tmp_path / f"{mixer}.onnx")
    sizes = {x.name: x.shape for x in (*loaded.get_inputs(), *loaded.get_outputs())}
    known, layer = layer_of(mixer)
    states = {n: x for n, x in known.tensors(layer.initial_state(1)).items() if x.is_complex()}
    assert states
    for name, x in states.items():
        for port in (name, f"{name}_next"):
            assert sizes[port][1:] == [*x.shape[1:], 2] and isinstance(sizes[port][0], str)


@pytest.mark.full
def test_a_mixer_of_whole_sequences_has_no_parts(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    _, layer = layer_of("dlr_bidirectional")
    exported = dsfc.export(layer, tmp_path / "a.onnx", to="onnx")
    assert exported.parts == () and exported.error < CLOSE


@pytest.mark.ci
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_a_real_form_has_no_complex_tensor_and_the_same_numbers() -> None:
    _, layer = layer_of("lru")
    real = real_form(program(layer, step=True))
    assert real.inputs == ("u", "x") and real.parts == ("x", "x_next")
    assert not any(
        isinstance(x, Tensor) and x.is_complex()
        for x in (node.meta.get("val") for node in real.exported.graph.nodes)
    )
    tensors = real.example(6, 1, 3)
    got, want = real.exported.module()(**tensors), real.eager(tensors)
    assert tensors["x"].shape[-1] == 2
    for g, w in zip(got, want, strict=True):
        torch.testing.assert_close(g, w)
    assert real_form(real) is real


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_an_operator_without_a_rule_is_named() -> None:
    _, layer = layer_of("lru")
    traced = program(layer, step=True)

    class Other(nn.Module):
        def forward(self, u: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
            return u, torch.atanh(x)

    example = traced.example(3, 1, 2)
    other = replace(traced, exported=torch.export.export(Other(), (), example))
    with pytest.raises(NoProgram, match=r"^there is no rule for atanh of complex numbers, which"):
        real_form(other)
