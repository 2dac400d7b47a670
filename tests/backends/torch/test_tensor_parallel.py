"""Layers whose heads processes share out are the layer of one process, or are refused."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import emitted
import pytest
from click.testing import CliRunner
from own_inputs import OWN_INPUTS

import dsfc
from dsfc.cli import commands
from dsfc.diagnostics.report import DiagnosticError

PROCESS = Path(__file__).with_name("tensor_process.py")
ON_MESH = Path(__file__).with_name("tensor_on_mesh.py")

TWO_AXES = """
  dims d, heads a = 2, heads b = 3, n = 3, p = 2
  input u : d
  param W_q, W_k : d -> a × b × n; W_v : d -> a × b × p; W_g : d -> b × n; w_f : d -> a
  state S : a × b × n × p
  S = sigmoid(w_f u) * S[i-1] + W_k u ⊗ W_v u
  y = (W_q u * W_g u) · S"""
"""Both axes are of heads; only the first is shared out, and a map gives the second alone."""

HEADS_ALONE = """
  dims d, heads h = 4
  input u : d
  param W_v, w_f : d -> h
  state s : h
  s = sigmoid(w_f u) * s[i-1] + W_v u
  y = s"""
"""A head is a number, so that the norm would be over all heads."""


def layer_of(spec: str, folder: Path, body: str | None = None, backend: str = "torch") -> str:
    """The path of a module with a layer whose heads processes may share out."""
    if body is not None:
        path = folder / f"{spec}.dsf"
        path.write_text(f"mixer {spec} {{\n{body}\n}}\n", encoding="utf-8")
        spec = str(path)
    out = f"{folder}/"
    return str(dsfc.compile(spec, backend, out=out, layer=True, tensor_parallel=True))


def run(count: int, cases: list[object], folder: Path, program: Path = PROCESS) -> None:
    """Runs cases in some processes."""
    command = [sys.executable, "-W", "ignore", str(program), str(folder / f"store{count}")]
    started = [
        subprocess.Popen(
            [*command, str(rank), str(count), json.dumps(cases)], stderr=subprocess.PIPE, text=True
        )
        for rank in range(count)
    ]
    said = [process.communicate()[1] for process in started]
    assert [p.returncode for p in started] == [0] * count, "\n".join(x[-2000:] for x in said)


@pytest.mark.ci
def test_two_processes_are_one(tmp_path: Path, tier: str) -> None:
    """Decays of keys from a low rank, maxima, two axes of heads; in the full tier all pairs too."""
    sizes = {"d": 8, "h": 4}
    cases: list[object] = [
        (layer_of("gla", tmp_path), {**sizes, "r": 3, "bias": True}, "float64"),
        (layer_of("gated_deltanet", tmp_path), sizes, "float32"),
        (layer_of("mlstm", tmp_path), {**sizes, "norm": "layer", "gate": "silu"}, "float64"),
        (layer_of("softmax", tmp_path), sizes, "float64"),
        (layer_of("two_axes", tmp_path, TWO_AXES), {"d": 4, "norm": "rms"}, "float64"),
        (layer_of("retnet", tmp_path), {"d": 9, "h": 3}, "float64"),
    ]
    run(2, cases if tier == "full" else cases[::2], tmp_path)


@pytest.mark.full
def test_four_processes_are_one_in_kernels_too(tmp_path: Path) -> None:
    cases: list[object] = [
        (layer_of(name, tmp_path, backend="c"), {"d": 8, "h": 4}, "float64")
        for name in ("ssd", "rwkv6", "rwkv7", "gateloop")
    ]
    run(4, cases, tmp_path)


@pytest.mark.full
def test_fsdp2_and_context_parallelism_take_the_other_dimension_of_a_mesh(tmp_path: Path) -> None:
    out = tmp_path / "gla.py"
    dsfc.compile("gla", out=out, layer=True, context_parallel=True, tensor_parallel=True)
    run(4, [str(out)], tmp_path, ON_MESH)


@pytest.mark.full
def test_every_spec_with_heads_is_shared_out_or_refused(tmp_path: Path) -> None:
    apart: list[str] = []
    refused: dict[str, str] = {}
    for name in emitted.compiled():
        try:
            apart.append(layer_of(name, tmp_path))
        except DiagnosticError as e:
            refused[name] = e.diagnostics[0].message
    assert len(apart) > 20
    joined = {name for name, said in refused.items() if "sums over h by W_O" in said}
    assert joined == {"lnssm_block", "normalized_attn_multihead"}
    others = [said for name, said in refused.items() if name not in joined]
    assert all("no axis is declared as `heads`" in x or "no layer around" in x for x in others)
    run(2, [(path, {"d": 8, "h": 4}, "float64") for path in apart], tmp_path)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("dims d\ninput u : d\nstate s : d\ns = 1/2 * s[i-1] + u\ny = s", "no axis is declared"),
        (
            "dims d, heads h = 2, n = 2\ninput u : d\nparam W : d -> h × n; O : h × n -> d\n"
            "state S : h × n\nS = 1/2 * S[i-1] + W u\ny = O S",
            "`y` sums over h by O",
        ),
        (
            "dims d, heads h = 2, n = 2\ninput u : d\nparam W : d -> h × n\n"
            "state S : h × n\nS = 1/2 * S[i-1] + W u\ny = S / (1 + sum[h](S * S))",
            "`y` takes the sum over h",
        ),
        (
            "dims d, heads h = 2, n = d / h\ninput u : d\nparam W : d -> n\n"
            "state S : n\nS = 1/2 * S[i-1] + W u\ny = S",
            "its output has no axis h",
        ),
        (OWN_INPUTS, "its input v has p in front of h"),
    ],
)
def test_mixers_whose_heads_are_not_apart_are_refused(
    body: str, problem: str, tmp_path: Path
) -> None:
    with pytest.raises(DiagnosticError) as refused:
        layer_of("joined", tmp_path, body)
    (diagnostic,) = refused.value.diagnostics
    assert diagnostic.code == "E-TENSOR-PARALLEL" and problem in diagnostic.message
    assert diagnostic.span.source.name.endswith("joined.dsf")


def test_a_norm_over_all_heads_is_refused(tmp_path: Path) -> None:
    module = dsfc.import_module(layer_of("heads_alone", tmp_path, HEADS_ALONE))
    with pytest.raises(ValueError, match="the norm is over all heads"):
        module.HeadsAloneLayer(4, norm="rms").tensor_parallel_plan()
    plan = module.HeadsAloneLayer(4, gate="silu").tensor_parallel_plan()
    assert list(plan) == ["mixer", "W_v", "w_f", "out_proj", "gate_proj"]


def test_the_option_goes_with_a_layer(tmp_path: Path) -> None:
    done = CliRunner().invoke(commands, ["compile", "gla", "--tensor-parallel", "-o", "-"])
    assert done.exit_code == 2 and "goes with --layer" in done.output
    with pytest.raises(ValueError, match="needs a layer"):
        dsfc.load("gla").module(tensor_parallel=True)
