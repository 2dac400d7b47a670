"""Layers as researchers write them: lifted, run beside the spec, and proved to be known mixers."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from dsfc.api.decide import equivalent
from dsfc.api.lift import Lifted, lift
from dsfc.api.pipeline import load
from dsfc.lift.check import CLOSE, LENGTHS
from dsfc.prover.verdict import Proved, Refuted

pytestmark = pytest.mark.ci

HERE = Path(__file__).parent
LAYERS = HERE / "layers.py"

SIZES: dict[str, dict[str, object]] = {
    "LinearAttention": {"d_model": 10, "heads": 2},
    "NormalisedAttention": {"d_model": 6, "heads": 1},
    "CausalSoftmax": {"d_model": 8, "heads": 4},
    "SdpaAttention": {"d_model": 9, "heads": 3},
    "BufferMaskAttention": {"d_model": 3, "max_len": 32},
    "RetNetParallel": {"d_model": 8, "heads": 2},
    "GatedLinearAttention": {"d_model": 6, "heads": 2, "rank": 4},
    "GatedDeltaNet": {"d_model": 8, "heads": 2},
    "SelectiveScan": {"d_inner": 6, "d_state": 4, "dt_rank": 2},
    "MinGRU": {"dim": 4, "hidden": 4},
    "HGRN": {"dim": 3},
    "ShortConv": {"dim": 5, "kernel": 6},
    "PaddedConv": {"dim": 4, "out": 4, "kernel": 2},
    "Ema": {"dim": 4, "n": 2},
    "Lru": {"d_model": 4, "d_state": 4},
    "Mlp": {"dim": 4, "hidden": 6},
    "LayerNormGate": {"dim": 4},
    "TokenShift": {"dim": 5},
    "Ssd": {"d_model": 8, "heads": 2, "d_state": 3},
    "LinearRnn": {"dim": 3, "state": 3},
    "RunningMean": {},
    "Bidirectional": {"dim": 4},
    "Alibi": {"dim": 4},
    "Scanned": {"dim": 3},
}
"""Sizes beside those that the layers have by themselves."""

SHAPES = {"k": ["B", "T", "3", "4"], "v": ["B", "T", "3", "5"], "g": ["B", "T", "3"]}


def lifted(name: str, arguments: dict[str, object] | None = None) -> Lifted:
    return lift(LAYERS, name, arguments)


def test_every_layer_of_the_file_is_lifted() -> None:
    tree = ast.parse(LAYERS.read_text(encoding="utf-8"))
    assert set(SIZES) == {n.name for n in tree.body if isinstance(n, ast.ClassDef)}


@pytest.mark.share(1, ci=14)
@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("other", [False, True], ids=["sizes", "other sizes"])
def test_a_layer_is_its_spec(name: str, other: bool) -> None:
    result = lifted(name, SIZES[name] if other else None)
    assert result.untested is None and result.tested is not None
    assert result.tested.lengths == LENGTHS
    assert result.tested.values <= CLOSE and result.tested.gradients <= CLOSE
    assert result.tested.unread == ()


def test_a_function_of_tensors_is_its_spec() -> None:
    result = lift(LAYERS, "decayed_sum", inputs=SHAPES)
    assert result.tested is not None and result.tested.values <= CLOSE


KNOWN = {
    "GatedLinearAttention": (
        "gla",
        "x=u q_proj=W_Q k_proj=W_K v_proj=W_V gk_proj_0=W_1 gk_proj_1=W_2 b_gk_proj_1=b_alpha",
    ),
    "NormalisedAttention": ("linear_attn", "x=u W_q=W_Q W_k=W_K W_v=W_V"),
    "RetNetParallel": ("retnet", "x=u"),
    "SelectiveScan": (
        "s6",
        "A_log=a x_proj_dt=W_u dt_proj=W_Delta b_dt_proj=b_Delta x_proj_B=W_B x_proj_C=W_C",
    ),
}


@pytest.mark.share(1, ci=2)
@pytest.mark.parametrize("name", KNOWN)
def test_a_layer_is_proved_to_be_a_known_mixer(name: str) -> None:
    spec, words = KNOWN[name]
    names = [(theirs, ours) for theirs, _, ours in (w.partition("=") for w in words.split())]
    verdict = equivalent(load(spec), lifted(name).compilation, names).equal
    assert isinstance(verdict, Proved), verdict


def test_a_layer_that_is_another_function_is_refuted() -> None:
    """The layer has SiLU behind its convolution, the mixer has not."""
    names = [("x", "u"), ("conv", "w"), ("b_conv", "b")]
    verdict = equivalent(load("short_convolution"), lifted("ShortConv").compilation, names).equal
    assert isinstance(verdict, Refuted)


def test_names_are_the_users_own() -> None:
    text = lifted("GatedLinearAttention").text
    assert "  S = g * S[i-1] + k ⊗ v\n" in text
    assert "  g = sigmoid(gk_proj_1 gk_proj_0 x + b_gk_proj_1)^(1/16)\n" in text
    assert "  y = q · S * n^-(1/2)\n" in text


def test_parts_of_a_parameter_are_named_and_explained() -> None:
    result = lifted("SelectiveScan")
    assert result.renamed["x_proj_B"] == "x_proj.weight, entries 3 to 7 of dimension 0"


def test_a_buffer_keeps_its_formula() -> None:
    assert "buffer γ : h = 1 - 2^(-5 - iota[h])" in lifted("RetNetParallel").text
