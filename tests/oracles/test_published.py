"""Oracles beside the references that others publish: the recurrences of FLA and mambapy.

Projections and gates are written once more here, as the packages' layers have them; the references
calculate in float32. Skipped where the packages of the `benchmark` extra are not installed.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import ModuleType, SimpleNamespace

import pytest
import torch
from torch import Tensor
from torch.nn.functional import elu, logsigmoid, normalize, silu, softplus

pytestmark = [
    pytest.mark.ci,
    # What the packages miss of their own GPU kernels.
    pytest.mark.filterwarnings("ignore:Triton is not supported on current platform"),
    pytest.mark.filterwarnings("ignore:Flash Attention is not installed"),
    pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning"),
]

ROUNDED = 2e-5
"""Relative; float32 over a dozen tokens."""
LENGTH = 11

Tensors = dict[str, Tensor]


def naive(name: str, function: str) -> Callable[..., tuple[Tensor, object]]:
    """A plain PyTorch reference of flash-linear-attention."""
    pytest.importorskip("fla")
    return getattr(importlib.import_module(f"fla.ops.{name}.naive"), function)


def heads(t: Tensors, name: str) -> Tensor:
    """`[B, L, H, …]` of a map by heads."""
    return torch.einsum("hnd,bld->blhn", t[name], t["u"])


def qkv(t: Tensors) -> tuple[Tensor, Tensor, Tensor]:
    return heads(t, "W_Q"), heads(t, "W_K"), heads(t, "W_V")


def unit_qkv(t: Tensors) -> tuple[Tensor, Tensor]:
    q, k, _ = qkv(t)
    return normalize(silu(q), dim=-1), normalize(silu(k), dim=-1)


def per_key(t: Tensors) -> Tensor:
    return torch.einsum("hnr,rd,bld->blhn", t["W_2"], t["W_1"], t["u"])


def gla(t: Tensors) -> Tensor:
    decay = logsigmoid(per_key(t) + t["b_alpha"]) / 16
    return naive("gla", "naive_recurrent_gla")(*qkv(t), decay)[0]


def deltanet(t: Tensors) -> Tensor:
    (q, k), v = unit_qkv(t), heads(t, "W_V")
    beta = torch.sigmoid(t["u"] @ t["w_beta"].T)
    by_head = (x.transpose(1, 2) for x in (q, k, v, beta))
    return naive("delta_rule", "delta_rule_recurrence")(*by_head)[0].transpose(1, 2)


def gated_deltanet(t: Tensors) -> Tensor:
    (q, k), v = unit_qkv(t), heads(t, "W_V")
    beta = torch.sigmoid(t["u"] @ t["w_beta"].T)
    decay = -t["a"] * softplus(t["u"] @ t["w_alpha"].T + t["b_alpha"])
    return naive("gated_delta_rule", "naive_recurrent_gated_delta_rule")(q, k, v, beta, decay)[0]


def kda(t: Tensors) -> Tensor:
    (q, k), v = unit_qkv(t), silu(heads(t, "W_V"))
    beta = torch.sigmoid(t["u"] @ t["w_beta"].T)
    decay = -t["a"][:, None] * softplus(per_key(t) + t["b_alpha"])
    return naive("kda", "naive_recurrent_kda")(q, k, v, decay, beta)[0]


def gsa(t: Tensors) -> Tensor:
    q, k, v = (silu(x) for x in qkv(t))
    forget = logsigmoid(heads(t, "W_f")) / 8
    keep = 1 - forget.exp()
    return naive("gsa", "naive_recurrent_gsa")(q, k, v, keep, forget, scale=1.0)[0]


def linear_attn(t: Tensors) -> Tensor:
    q, k, v = qkv(t)
    scan = naive("linear_attn", "naive_recurrent_linear_attn")
    return scan(elu(q) + 1, elu(k) + 1, v, scale=1.0, normalize=True)[0]


def retnet(t: Tensors) -> Tensor:
    by_head = (x.transpose(1, 2) for x in qkv(t))
    return naive("retention", "naive_retention")(*by_head).transpose(1, 2)


def ssd(t: Tensors) -> Tensor:
    x, step = heads(t, "W_x"), softplus(t["u"] @ t["w_Delta"].T + t["b_Delta"])
    b, c = ((t["u"] @ t[w].T)[:, :, None].expand(-1, -1, x.shape[2], -1) for w in ("W_B", "W_C"))
    scan = naive("simple_gla", "naive_recurrent_simple_gla")
    return scan(c, b, step[..., None] * x, -step * t["a"], scale=1.0)[0] + t["D"][:, None] * x


def s6(t: Tensors) -> Tensor:
    block = pytest.importorskip("mambapy.mamba").MambaBlock
    u = t["u"]
    step = softplus(u @ t["W_u"].T @ t["W_Delta"].T + t["b_Delta"])
    config = SimpleNamespace(d_inner=u.shape[2], d_state=t["a"].shape[1])
    arguments = u, step, -t["a"].exp(), u @ t["W_B"].T, u @ t["W_C"].T, t["D"]
    return block.selective_scan_seq(SimpleNamespace(config=config), *arguments)


PUBLISHED = (gla, deltanet, gated_deltanet, kda, gsa, linear_attn, retnet, ssd, s6)


@pytest.mark.parametrize("published", PUBLISHED, ids=lambda it: it.__name__)
def test_an_oracle_is_the_published_reference(
    published: Callable[[Tensors], Tensor],
    load: Callable[[str], ModuleType],
    draw: Callable[..., Tensors],
) -> None:
    oracle = load(published.__name__)
    tensors = draw(oracle, length=LENGTH)
    if "gamma" in tensors:  # theirs is fixed
        tensors["gamma"] = 1 - torch.exp2(-5 - torch.arange(oracle.DIMS["h"]).double())
    want, _ = oracle.forward(tensors, oracle.DIMS)
    got = published({name: x.float() for name, x in tensors.items()}).double()
    assert got.shape == want.shape
    assert (got - want).abs().max() <= ROUNDED * want.abs().max()
