"""Kernels that go chunk by chunk compute what a loop over tokens does, and its gradients."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

import dsfc
from dsfc.kernel_ir.interpret import interpret, value_of
from dsfc.kernel_ir.ir import Access, Kernel
from dsfc.kernels.chunkwise import CHUNK, backward, forward, has_chunks
from dsfc.plan.scan_ir import Adjoint, Form, Scan

Array = NDArray[Any]

# What a kernel computes of tokens beyond the end is never stored, but NumPy speaks of it.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

FORMS = {
    "retnet": Form.MATRIX,
    "gla": Form.KEYED,
    "rewrite": Form.LOW_RANK,
    "rwkv7": Form.KEYED_LOW_RANK,
    "gated_deltanet": Form.DELTA,
    "kda": Form.KEYED_DELTA,
}
UNDECAYED = {"linear_attn": Form.MATRIX, "deltanet": Form.DELTA}
REWRITE = """mixer rewrite {
  dims heads h = 2, n = 3, p = 2
  input q, k, a, b : h × n; v : h × p; g : h
  state S : h × n × p
  S = exp(g) * S[i-1] + a ⊗ (b · S[i-1]) + k ⊗ v; y = q · S
}
"""
"""No shipped mixer has a decay of heads beside a low-rank part that is no delta rule."""
ROUNDED = 1e-12
"""Largest error of a tensor in float64, relative to its largest entry."""


@cache
def scan_of(spec: str) -> tuple[Scan, Adjoint]:
    if spec == "rewrite":
        with TemporaryDirectory() as folder:
            path = Path(folder) / "rewrite.dsf"
            path.write_text(REWRITE, encoding="utf-8")
            plan = dsfc.load(path).plan
    else:
        plan = dsfc.load(spec).plan
    scan = next(k for k in plan.kernels if isinstance(k, Scan))
    return scan, next(a for a in plan.adjoints if a.scan == scan.name)


def sizes_of(
    scan: Scan,
    length: int,
    keys: int = 3,
    channels: int = 3,
    *,
    span: int | None = None,
    rows: int = 1,
) -> dict[str, int]:
    """Two heads; blocks of two channels forwards; one span unless told."""
    chunks = -(-length // CHUNK[scan.form])
    span = max(chunks, 1) if span is None else span
    spans = {"SPAN": span, "SPANS": -(-chunks // span)}
    return {"B": rows, "L": length, "H": 2, "N": keys, "P": channels, "PT": 2, **spans}


def drawn(kernel: Kernel, sizes: dict[str, int], strong: bool) -> dict[str, Array]:
    """What a kernel reads; among strong decays, log λ of minus infinity and of -60."""
    draw = np.random.default_rng(7)
    out = {}
    for a in kernel.arguments:
        if a.access is not Access.READ:
            continue
        x = draw.normal(size=[value_of(s, sizes) for s in a.shape], scale=0.5)
        if a.name == "g":
            x = -np.abs(x)
            if strong:
                x[draw.random(x.shape) < 0.1] = -np.inf
                x[draw.random(x.shape) < 0.1] = -60
        # Tokens that read what they write, again and again, let the state grow.
        out[a.name] = x / sizes["N"] if a.name in ("a", "b", "r") else x
    return out


def by_tokens(values: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
    """Outputs and last state of h_i = λ_i h + k_i ⊗ v_i + a_i ⊗ (b_i h), o_i = q_i h_i.

    Or of a delta rule, f = λ_i h, h_i = f + k_i ⊗ (v_i + r_i (k_i f)).
    """
    state, outputs = values["S"], []
    for i in range(values["v"].shape[1]):
        x = {n: t[:, i] for n, t in values.items() if n != "S"}
        after = state
        if "g" in x:
            decay = x["g"].exp()
            after = (decay[..., None] if decay.ndim == 3 else decay[..., None, None]) * state
        written = x["v"]
        if "r" in x:
            retrieved = torch.einsum("bhn,bhnp->bhp", x["k"], after)
            written = written + x["r"][..., None] * retrieved
        after = after + x["k"][..., None] * written[..., None, :]
        if "a" in x:
            wy = torch.einsum("bhn,bhnp->bhp", x["b"], state)
            after = after + x["a"][..., None] * wy[..., None, :]
        state = after
        outputs.append(torch.einsum("bhn,bhnp->bhp", x["q"], state))
    return (torch.stack(outputs, 1) if outputs else torch.zeros_like(values["v"])), state


def expected(read: dict[str, Array], heads: int) -> tuple[dict[str, Array], dict[str, Array]]:
    """What both kernels write: outputs and gradients, of shared tensors head by head."""
    values = {}
    for name in read.keys() - {"do", "dS_last"}:
        x = torch.from_numpy(read[name])
        if name in ("q", "k", "a", "b") and x.ndim == 3:
            x = x[:, :, None].expand(-1, -1, heads, -1)
        values[name] = x.clone().requires_grad_()
    outputs, last = by_tokens(values)
    bars = torch.from_numpy(read["do"]), torch.from_numpy(read["dS_last"])
    total = (outputs * bars[0]).sum() + (last * bars[1]).sum()
    names = list(values)
    grads = torch.autograd.grad(total, [values[n] for n in names], allow_unused=True)
    gradients = {
        f"d{n}": np.zeros(values[n].shape) if x is None else x.numpy()
        for n, x in zip(names, grads, strict=True)
    }
    return {"o": outputs.detach().numpy(), "S_last": last.detach().numpy()}, gradients


def agree(got: dict[str, Array], want: dict[str, Array]) -> None:
    assert got.keys() == want.keys()
    for name, x in want.items():
        assert got[name].shape == x.shape, name
        assert np.isfinite(got[name]).all(), name
        bar = ROUNDED * float(np.abs(x).max(initial=0))
        assert np.abs(got[name] - x).max(initial=0) <= bar, name


@cache
def kernels(spec: str, shared: bool) -> tuple[Kernel, Kernel]:
    scan, adjoint = scan_of(spec)
    return forward(scan, shared), backward(scan, adjoint, shared)


def check(spec: str, sizes: dict[str, int], strong: bool, shared: bool = False) -> None:
    """Runs both kernels beside the loop over tokens."""
    ahead, back = kernels(spec, shared)
    read = drawn(back, sizes, strong)
    outputs, gradients = expected(read, sizes["H"])
    agree(interpret(back, read, sizes), gradients)
    names = {a.name for a in ahead.arguments}
    agree(interpret(ahead, {n: x for n, x in read.items() if n in names}, sizes), outputs)


@pytest.mark.parametrize("spec", FORMS | UNDECAYED)
def test_every_form_has_chunks(spec: str) -> None:
    scan, _ = scan_of(spec)
    assert scan.form is (FORMS | UNDECAYED)[spec] and has_chunks(scan)
    assert (scan.decay is None) == (spec in UNDECAYED)


@pytest.mark.parametrize("strong", [False, True], ids=["mild", "strong"])
@pytest.mark.parametrize("more", [(0, 0), (0, 1), (1, -1), (1, 0), (1, 1), (2, 3)])
@pytest.mark.parametrize("spec", FORMS)
def test_chunks_are_the_loop_at_every_length(
    spec: str, more: tuple[int, int], strong: bool
) -> None:
    scan, _ = scan_of(spec)
    chunks, tokens = more
    check(spec, sizes_of(scan, chunks * CHUNK[scan.form] + tokens), strong)


@pytest.mark.parametrize("tokens", [1, 35])
@pytest.mark.parametrize("spec", UNDECAYED)
def test_chunks_without_a_decay_are_the_loop(spec: str, tokens: int) -> None:
    scan, _ = scan_of(spec)
    check(spec, sizes_of(scan, tokens), strong=False)


@pytest.mark.parametrize("keys", [1, 3, 5])
@pytest.mark.parametrize("channels", [1, 3, 5])
@pytest.mark.parametrize("spec", FORMS)
def test_any_number_of_keys_and_channels_will_do(spec: str, keys: int, channels: int) -> None:
    scan, _ = scan_of(spec)
    check(spec, sizes_of(scan, 7, keys, channels), strong=True)


@pytest.mark.parametrize("span", [1, 2])
@pytest.mark.parametrize("spec", FORMS)
def test_gradients_do_not_depend_on_how_many_states_are_kept(spec: str, span: int) -> None:
    scan, _ = scan_of(spec)
    check(spec, sizes_of(scan, 2 * CHUNK[scan.form] + 3, span=span), strong=True)


@pytest.mark.parametrize("spec", FORMS)
def test_heads_that_share_keys_read_those_without_heads(spec: str) -> None:
    scan, _ = scan_of(spec)
    check(spec, sizes_of(scan, CHUNK[scan.form] + 1, rows=2), strong=True, shared=True)


@pytest.mark.parametrize("shared", [False, True], ids=["own keys", "shared keys"])
@pytest.mark.parametrize("spec", FORMS)
def test_gradients_are_the_sums_of_what_parts_of_the_channels_give(spec: str, shared: bool) -> None:
    scan, adjoint = scan_of(spec)
    sizes = sizes_of(scan, CHUNK[scan.form] + 3, channels=5)
    kernel = backward(scan, adjoint, shared, split=True, reload=True)
    read = drawn(kernel, sizes, strong=True)
    _, gradients = expected(read, sizes["H"])
    got = interpret(kernel, read, sizes)
    parts = {n for n, x in got.items() if x.ndim > gradients[n].ndim}
    assert parts == gradients.keys() - {"dv", "dS"}
    agree({n: x.sum(3) if n in parts else x for n, x in got.items()}, gradients)
