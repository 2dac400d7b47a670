"""Oracles beside the references that others publish: FLA, mambapy and transformers.

Projections and gates are written once more here, as the packages' layers have them; the references
calculate in float32. Skipped where the packages of the `references` extra are not installed.
"""

from __future__ import annotations

import importlib
import math
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


def taylor_softmax(t: Tensors) -> Tensor:
    by_head = (x.transpose(1, 2) for x in qkv(t))
    return naive("based", "naive_parallel_based")(*by_head).transpose(1, 2)


def softmax(t: Tensors) -> Tensor:
    return naive("attn", "naive_parallel_attn")(*qkv(t))[0]


def hgrn(t: Tensors) -> Tensor:
    """Theirs is real: the two parts of a state that does not turn."""
    scan = naive("hgrn", "naive_recurrent_hgrn")
    f = t["lb"] + (1 - t["lb"]) * torch.sigmoid(t["u"] @ t["W_f"].T)
    parts = [scan((1 - f) * silu(t["u"] @ t[w].T), f.log())[0] for w in ("W_re", "W_im")]
    return torch.sigmoid(torch.einsum("dce,ble->bldc", t["W_g"], t["u"])) * torch.stack(parts, -1)


def hgrn2(t: Tensors) -> Tensor:
    f = t["lb"] + (1 - t["lb"]) * torch.sigmoid(heads(t, "W_f"))
    q, v = silu(heads(t, "W_Q")), heads(t, "W_V")
    return naive("gla", "naive_recurrent_gla")(q, 1 - f, v, f.log())[0]


def rwkv(t: Tensors, decay: Tensor) -> Tensor:
    """The recurrence of RWKV-5 and -6, their decay as its logarithm."""
    pytest.importorskip("fla")
    scan = importlib.import_module("fla.ops.rwkv6.recurrent_naive").naive_recurrent_rwkv6
    by_head = (x.transpose(1, 2) for x in (*qkv(t), decay))
    return scan(*by_head, t["bonus"], scale=1.0)[0].transpose(1, 2)


def rwkv5(t: Tensors) -> Tensor:
    return rwkv(t, -t["w_0"].exp().expand_as(heads(t, "W_K")))


def rwkv6(t: Tensors) -> Tensor:
    low = torch.tanh(t["u"] @ t["W_1"].T)
    return rwkv(t, -torch.exp(t["w_0"] + torch.einsum("hnr,blr->blhn", t["W_2"], low)))


def rwkv7(t: Tensors) -> Tensor:
    """The general recurrence, and what FLA says that its kernels of RWKV-7's own parts compute."""
    scan = naive("generalized_delta_rule.dplr", "dplr_recurrence")
    parts = importlib.import_module("fla.ops.rwkv7.gate_output_correction")
    update = importlib.import_module("fla.ops.rwkv7.fused_k_update").k_update_ref
    q, k, v = qkv(t)
    low = torch.tanh(t["u"] @ t["W_1"].T)
    decay = -math.exp(-0.5) * torch.sigmoid(t["w_0"] + torch.einsum("hnr,blr->blhn", t["W_2"], low))
    rate = torch.einsum("hnr,rd,bld->blhn", t["A_2"], t["A_1"], t["u"])
    a, kappa = torch.sigmoid(t["a_0"] + rate), normalize(k * t["xi"], dim=-1)
    k = update(k, a, t["alpha"])
    arguments = (q * q.shape[-1] ** 0.5, k, v, -kappa, a * kappa, decay)
    read = scan(*(x.transpose(1, 2) for x in arguments))[0].transpose(1, 2)
    gate = torch.ones_like(v).flatten(2)
    out = parts.gate_output_correction_ref(read.flatten(2), q, k, t["bonus"], v, gate)
    return out.view_as(v)


# --- transformers ---------------------------------------------------------------------------------


def modelled(name: str) -> ModuleType:
    """The modelling code of transformers for a family."""
    pytest.importorskip("transformers")
    return importlib.import_module(f"transformers.models.{name}.modeling_{name}")


def mamba(t: Tensors) -> Tensor:
    u = t["u"]
    step = u @ t["W_u"].T @ t["W_Delta"].T
    channels = (x.transpose(1, 2) for x in (u, step, u @ t["W_B"].T, u @ t["W_C"].T))
    x, step, b, c = channels
    scan = modelled("mamba").mamba_selective_scan
    options = {"D": t["D"], "delta_bias": t["b_Delta"], "delta_softplus": True}
    return scan(x, step, -t["a"].exp(), b, c, **options).transpose(1, 2)


def mamba2(t: Tensors) -> Tensor:
    x, step = heads(t, "W_x"), t["u"] @ t["w_Delta"].T
    b, c = ((t["u"] @ t[w].T)[:, :, None] for w in ("W_B", "W_C"))
    scan = modelled("mamba2").mamba2_chunk_scan
    options = {"D": t["D"], "dt_bias": t["b_Delta"], "dt_softplus": True}
    return scan(x, step, -t["a"], b, c, chunk_size=4, **options)


def rwkv4(t: Tensors) -> Tensor:
    d = t["u"].shape[-1]
    config = SimpleNamespace(hidden_size=d, attention_hidden_size=d, context_length=LENGTH)
    layer = modelled("rwkv").RwkvSelfAttention(config)
    named = {"time_decay": "omega", "time_first": "bonus", "output.weight": "W_o"}
    for short, long in (("r", "receptance"), ("k", "key"), ("v", "value")):
        named |= {f"time_mix_{long}": f"mu_{short}", f"{long}.weight": f"W_{short}"}
    mine = layer.state_dict()
    layer.load_state_dict({theirs: t[n].view_as(mine[theirs]) for theirs, n in named.items()})
    return layer(t["u"])[0]


def rg_lru(t: Tensors) -> Tensor:
    d = t["u"].shape[-1]
    config = SimpleNamespace(num_attention_heads=1, lru_width=d)
    layer = modelled("recurrent_gemma").RecurrentGemmaRglru(config)
    gates = (("input", "g"), ("recurrent", "r"))
    values = {f"{long}_gate_weight": t[f"W_{short}"].T[None] for long, short in gates}
    values |= {f"{long}_gate_bias": t[f"b_{short}"][None] for long, short in gates}
    layer.load_state_dict(values | {"recurrent_param": t["zeta"]})
    # They reset at position 0, which the paper does not.
    return layer(t["u"], 1 + torch.arange(LENGTH).expand(t["u"].shape[:2]))


def mlstm(t: Tensors) -> Tensor:
    scan = modelled("xlstm").mlstm_recurrent_sequence_native
    gates = (t["u"] @ t[f"w_{g}"].T + t[f"b_{g}"] for g in "if")
    read = scan(*(x.transpose(1, 2) for x in (*qkv(t), *gates)))
    return torch.sigmoid(heads(t, "W_o")) * read.transpose(1, 2)


PUBLISHED = (
    *(gla, deltanet, gated_deltanet, kda, gsa, linear_attn, retnet, ssd, s6),
    *(taylor_softmax, softmax, hgrn, hgrn2, rwkv5, rwkv6, rwkv7, rwkv4, rg_lru, mlstm),
    *(mamba, mamba2),
)
ORACLE = {"mamba": "s6", "mamba2": "ssd"}
"""Of functions that are not called like their mixer: its second reference."""


@pytest.mark.parametrize("published", PUBLISHED, ids=lambda it: it.__name__)
def test_an_oracle_is_the_published_reference(
    published: Callable[[Tensors], Tensor],
    load: Callable[[str], ModuleType],
    draw: Callable[..., Tensors],
) -> None:
    oracle = load(ORACLE.get(published.__name__, published.__name__))
    tensors = draw(oracle, length=LENGTH)
    if "gamma" in tensors:  # theirs is fixed
        tensors["gamma"] = 1 - torch.exp2(-5 - torch.arange(oracle.DIMS["h"]).double())
    if "theta" in tensors:  # theirs does not turn
        tensors["theta"] = torch.zeros_like(tensors["theta"])
    want, _ = oracle.forward(tensors, oracle.DIMS)
    got = published({name: x.float() for name, x in tensors.items()}).double()
    assert got.shape == want.shape
    assert (got - want).abs().max() <= ROUNDED * want.abs().max()
