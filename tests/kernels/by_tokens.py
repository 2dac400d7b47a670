"""The loop over tokens that kernels of chunks are held to, and scans to try them on."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

import dsfc
from dsfc.kernel_ir.interpret import value_of
from dsfc.kernel_ir.ir import Access, Kernel
from dsfc.kernels.chunkwise import CHUNK
from dsfc.plan.scan_ir import Adjoint, Form, Scan

Array = NDArray[Any]

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
