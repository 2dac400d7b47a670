"""Facts of the literature about matrix states and modifiers, seen on the oracles.

Each oracle is written on its own, so an equality between two of them is evidence for both.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import ModuleType

import pytest
import torch
from torch import Tensor
from torch.nn.functional import conv1d, silu, softplus
from torch.testing import assert_close

Load = Callable[[str], ModuleType]
Draw = Callable[..., dict[str, Tensor]]


def output(
    oracle: ModuleType, tensors: dict[str, Tensor], dims: dict[str, int] | None = None
) -> Tensor:
    """Runs an oracle from zero states and returns its output."""
    y: Tensor = oracle.forward(tensors, dims or oracle.DIMS)[0]
    return y


def values(tensors: dict[str, Tensor]) -> Tensor:
    """The values W_V u_i, [B, L, h, p]."""
    return torch.einsum("hpd,bld->blhp", tensors["W_V"], tensors["u"])


def test_retnet_is_gla_with_a_constant_decay(load: Load, draw: Draw) -> None:
    gla = draw(load("gla"))
    gamma = torch.tensor([0.9, 0.7], dtype=torch.float64)
    gla["W_2"] = 0 * gla["W_2"]
    gla["b_alpha"] = torch.logit(gamma**16)[:, None].expand(2, 4)
    assert_close(output(load("gla"), gla), output(load("retnet"), {**gla, "gamma": gamma}))


def test_retnet_is_rescaled_attention(load: Load, draw: Draw) -> None:
    """q_i → γ^i q_i, k_j → γ^-j k_j (an unbounded gauge)."""
    tensors = draw(load("retnet"))
    rows = tensors["gamma"] ** torch.arange(7.0)[:, None]
    q, k = (torch.einsum("hnd,bld->blhn", tensors[w], tensors["u"]) for w in ("W_Q", "W_K"))
    score = torch.einsum("bihn,bjhn->bijh", q * rows[..., None], k / rows[..., None])
    score = score * torch.ones(7, 7, dtype=torch.float64).tril()[None, :, :, None]
    expected = torch.einsum("bijh,bjhp->bihp", score, values(tensors)) / math.sqrt(4)
    assert_close(output(load("retnet"), tensors), expected)


def test_rotation_of_angle_zero_is_retnet_without_its_scale(load: Load, draw: Draw) -> None:
    tensors = draw(load("retnet_rope"))
    dims = {**load("retnet_rope").DIMS, "n": 5}
    tensors["theta"] = 0 * tensors["theta"]
    tensors["Q_im"] = 0 * tensors["Q_im"]
    plain = {**tensors, "W_Q": tensors["Q_re"], "W_K": tensors["K_re"]}
    expected = math.sqrt(5) * output(load("retnet"), plain, dims)
    assert_close(output(load("retnet_rope"), tensors), expected)


def test_rotation_depends_on_the_lag_alone(load: Load, draw: Draw) -> None:
    """Scores are Re(Σ_m Q_i conj(K_j) e^(iθ(i-j))), written with complex numbers."""
    tensors = draw(load("retnet_rope"))
    u = tensors["u"] + 0j
    q = torch.einsum("hmd,bld->blhm", torch.complex(tensors["Q_re"], tensors["Q_im"]), u)
    k = torch.einsum("hmd,bld->blhm", torch.complex(tensors["K_re"], tensors["K_im"]), u)
    lag = torch.arange(7.0)[:, None] - torch.arange(7.0)
    turn = torch.exp(1j * lag[..., None] * tensors["theta"])
    score = torch.einsum("bihm,bjhm,ijm->bijh", q, k.conj(), turn).real
    mask = torch.where(lag[..., None] >= 0, tensors["gamma"] ** lag.clamp(min=0)[..., None], 0.0)
    expected = torch.einsum("bijh,ijh,bjhp->bihp", score, mask, values(tensors))
    assert_close(output(load("retnet_rope"), tensors), expected)


def test_gateloop_without_rotation_is_real(load: Load, draw: Draw) -> None:
    tensors = draw(load("gateloop"))
    tensors["w_b"] = 0 * tensors["w_b"]
    tensors["w_a"] = 0 * tensors["w_a"]
    half = torch.full((2,), 0.5, dtype=torch.float64)
    expected = 2 * output(load("retnet"), {**tensors, "gamma": half})
    assert_close(output(load("gateloop"), tensors), expected)


def test_gateloop_turns_by_the_sum_of_the_angles(load: Load, draw: Draw) -> None:
    tensors = draw(load("gateloop"))
    u = tensors["u"]
    log = torch.log(torch.sigmoid(u @ tensors["w_a"].T)) + 1j * (u @ tensors["w_b"].T)
    total = log.cumsum(1)
    weight = torch.exp(total[:, :, None] - total[:, None, :]).real
    weight = weight * torch.ones(7, 7, dtype=torch.float64).tril()[None, :, :, None]
    q, k = (torch.einsum("hnd,bld->blhn", tensors[w], u) for w in ("W_Q", "W_K"))
    weight = weight * torch.einsum("bihn,bjhn->bijh", q, k)
    expected = torch.einsum("bijh,bjhp->bihp", weight, values(tensors))
    assert_close(output(load("gateloop"), tensors), expected)


def test_rwkv5_is_rwkv6_with_a_constant_decay(load: Load, draw: Draw) -> None:
    tensors = draw(load("rwkv6"))
    tensors["W_2"] = 0 * tensors["W_2"]
    assert_close(output(load("rwkv6"), tensors), output(load("rwkv5"), tensors))


def test_rwkv6_unrolls_to_a_product_of_decays(load: Load, draw: Draw) -> None:
    """y_i = Σ_{j<i} (q_i Π_{j<l<i} w_l)·k_j v_j + (bonus q_i·k_i) v_i, no power."""
    tensors = draw(load("rwkv6"))
    u = tensors["u"]
    q, k = (torch.einsum("hnd,bld->blhn", tensors[w], u) for w in ("W_Q", "W_K"))
    v = values(tensors)
    rate = torch.einsum("hnr,blr->blhn", tensors["W_2"], torch.tanh(u @ tensors["W_1"].T))
    w = torch.exp(-torch.exp(tensors["w_0"] + rate))
    y = output(load("rwkv6"), tensors)
    for i in range(7):
        expected = (tensors["bonus"] * q[:, i] * k[:, i]).sum(-1, keepdim=True) * v[:, i]
        for j in range(i):
            between = w[:, j + 1 : i].prod(1)
            expected = expected + (q[:, i] * between * k[:, j]).sum(-1, keepdim=True) * v[:, j]
        assert_close(y[:, i], expected)


def test_lnssm_without_decay_is_gated_lln_attention(load: Load, draw: Draw) -> None:
    tensors = draw(load("lnssm"))
    tensors["omega"] = torch.full((2, 4), -math.inf, dtype=torch.float64)
    gate = silu(torch.einsum("hpd,bld->blhp", tensors["W_g"], tensors["u"]))
    assert_close(output(load("lnssm"), tensors), gate * output(load("lln"), tensors))


def test_lnssm_with_one_key_is_rwkv4_with_the_decay_as_bonus(load: Load, draw: Draw) -> None:
    """LNSSM eq. 15, one key per channel: the factor e^q cancels; the bonus of RWKV-4 is w."""
    dims = {"d": 3, "h": 3, "n": 1, "p": 1}
    lnssm = draw(load("lnssm"), dims=dims)
    identity, ones = torch.eye(3, dtype=torch.float64), torch.ones(3, dtype=torch.float64)
    rwkv = {
        "u": lnssm["u"],
        **{"mu_r": ones, "mu_k": ones, "mu_v": ones},
        "omega": lnssm["omega"][:, 0],
        "bonus": lnssm["omega"][:, 0].exp(),
        **{"W_r": 0 * identity, "W_k": lnssm["W_K"][:, 0], "W_v": lnssm["W_V"][:, 0]},
        "W_o": 2 * identity,
    }
    gate = silu(torch.einsum("hpd,bld->blhp", lnssm["W_g"], lnssm["u"]))
    expected = gate[..., 0] * output(load("rwkv4"), rwkv, dims)
    assert_close(output(load("lnssm"), lnssm, dims)[..., 0], expected)


def test_rwkv4_shifts_its_inputs(load: Load, draw: Draw) -> None:
    """μ = 0 reads the token before: the outputs move by one."""
    tensors = draw(load("rwkv4"))
    for name in ("mu_r", "mu_k", "mu_v"):
        tensors[name] = torch.zeros_like(tensors[name])
    late = output(load("rwkv4"), tensors)
    padded = torch.cat([torch.zeros(2, 1, 4, dtype=torch.float64), tensors["u"][:, :-1]], 1)
    for name in ("mu_r", "mu_k", "mu_v"):
        tensors[name] = torch.ones_like(tensors[name])
    assert_close(late, output(load("rwkv4"), {**tensors, "u": padded}))


def test_hgrn2_is_convex(load: Load, draw: Draw) -> None:
    """Since f + (1 - f) = 1 and lb ≤ f: with v = 1, 1 - S_i = Π f ≥ lb^(i+1)."""
    tensors = draw(load("hgrn2"))
    tensors["W_V"], tensors["u"] = 0 * tensors["W_V"], tensors["u"].clone()
    tensors["u"][..., 0], tensors["W_V"][..., 0] = 1, 1
    state = load("hgrn2").forward(tensors, load("hgrn2").DIMS)[1]["S"]
    gate = torch.sigmoid(torch.einsum("hnd,bld->blhn", tensors["W_f"], tensors["u"]))
    product = (tensors["lb"] + (1 - tensors["lb"]) * gate).prod(1)
    assert_close(1 - state, product[..., None].expand_as(state))
    assert (product >= tensors["lb"] ** 7).all()


def test_hgrn2_unrolls_to_a_product_of_gates(load: Load, draw: Draw) -> None:
    tensors = draw(load("hgrn2"))
    u, v = tensors["u"], values(tensors)
    q = silu(torch.einsum("hnd,bld->blhn", tensors["W_Q"], u))
    gate = torch.sigmoid(torch.einsum("hnd,bld->blhn", tensors["W_f"], u))
    f = tensors["lb"] + (1 - tensors["lb"]) * gate
    y = output(load("hgrn2"), tensors)
    for i in range(7):
        expected = torch.zeros_like(y[:, i])
        for j in range(i + 1):
            key = (1 - f[:, j]) * f[:, j + 1 : i + 1].prod(1)
            expected = expected + (q[:, i] * key).sum(-1, keepdim=True) * v[:, j] / 2
        assert_close(y[:, i], expected)


def test_mlstm_equals_its_stabilised_form(load: Load, draw: Draw) -> None:
    """A running maximum of the log-gates changes nothing, the guard becoming e^(-m)."""
    tensors = draw(load("mlstm"))
    tensors["w_i"] = 5 * tensors["w_i"]
    u = tensors["u"]
    q, k = (torch.einsum("hnd,bld->blhn", tensors[w], u) for w in ("W_Q", "W_K"))
    v = values(tensors)
    log_in = u @ tensors["w_i"].T + tensors["b_i"]
    log_forget = -softplus(-(u @ tensors["w_f"].T + tensors["b_f"]))
    gate = torch.sigmoid(torch.einsum("hpd,bld->blhp", tensors["W_o"], u))
    matrix, total = torch.zeros(2, 2, 4, 3), torch.zeros(2, 2, 4)
    top = torch.zeros(2, 2)
    y = output(load("mlstm"), tensors)
    for i in range(7):
        last, top = top, torch.maximum(log_forget[:, i] + top, log_in[:, i])
        f = torch.exp(log_forget[:, i] + last - top)[..., None]
        g = torch.exp(log_in[:, i] - top)[..., None]
        matrix = f[..., None] * matrix + (g * k[:, i])[..., None] * v[:, i, :, None]
        total = f * total + g * k[:, i]
        s = q[:, i] / 2
        below = torch.maximum((s * total).sum(-1).abs(), torch.exp(-top))[..., None]
        assert_close(y[:, i], gate[:, i] * (s[..., None] * matrix).sum(-2) / below)


@pytest.mark.parametrize("name", ["deltanet", "gated_deltanet"])
def test_the_delta_rule_contracts(name: str, load: Load, draw: Draw) -> None:
    """‖α(I - βkkᵀ)‖ ≤ 1 for unit k and 0 ≤ β ≤ 1: without values the state does not grow."""
    oracle = load(name)
    tensors = draw(oracle)
    tensors["W_V"] = 0 * tensors["W_V"]
    start = draw(oracle, groups=("states",), seed=4)
    state = start["S"]
    for i in range(7):
        token = {**tensors, "u": tensors["u"][:, i : i + 1]}
        after = oracle.forward(token, oracle.DIMS, {"S": state})[1]["S"]
        assert (
            torch.linalg.matrix_norm(after, 2) <= torch.linalg.matrix_norm(state, 2) + 1e-12
        ).all()
        state = after
    assert (state.norm() < start["S"].norm()).item()


def test_gated_deltanet_without_decay_is_deltanet(load: Load, draw: Draw) -> None:
    tensors = draw(load("gated_deltanet"))
    tensors["a"] = 0 * tensors["a"]
    assert_close(output(load("gated_deltanet"), tensors), output(load("deltanet"), tensors))


def test_deltanet_recalls_the_last_value_of_a_key(load: Load, draw: Draw) -> None:
    """β → 1 replaces what the state holds for a key: q = k reads back n^(-1/2) v exactly."""
    tensors = draw(load("deltanet"))
    tensors["u"][..., 0], tensors["w_beta"][:] = 1, 0
    tensors["w_beta"][:, 0] = 40
    tensors["W_Q"] = tensors["W_K"]
    assert_close(output(load("deltanet"), tensors), values(tensors) / 2)


def test_short_convolution_is_the_platform_s(load: Load, draw: Draw) -> None:
    tensors = draw(load("short_convolution"))
    padded = torch.nn.functional.pad(tensors["u"].mT, (3, 0))
    expected = conv1d(padded, tensors["w"].flip(1)[:, None], tensors["b"], groups=3)
    assert_close(output(load("short_convolution"), tensors), expected.mT)


def test_the_block_has_unit_mean_square_before_its_gate(load: Load, draw: Draw) -> None:
    tensors = draw(load("gla_block"))
    mu, u = tensors["u_token_shift_mu"], tensors["u"]
    before = torch.cat([torch.zeros(2, 1, 8, dtype=torch.float64), u[:, :-1]], 1)
    gate = silu(torch.einsum("hpd,bld->blhp", tensors["y_gate_W"], mu * u + (1 - mu) * before))
    normed = output(load("gla_block"), tensors) / gate
    assert_close(normed.square().mean(-1), torch.ones(2, 7, 2, dtype=torch.float64))


def test_the_block_is_gla_between_its_modifiers(load: Load, draw: Draw) -> None:
    """GLA on tokens that carry the shifted input and the filtered q, k, v; W_Q, … select them."""
    dims = load("gla_block").DIMS
    tensors = draw(load("gla_block"))
    mu, u = tensors["u_token_shift_mu"], tensors["u"]
    before = torch.cat([torch.zeros(2, 1, 8, dtype=torch.float64), u[:, :-1]], 1)
    shifted = mu * u + (1 - mu) * before
    parts = [shifted]
    for name in ("q", "k", "v"):
        mapped = torch.einsum("had,bld->blha", tensors[f"W_{name.upper()}"], shifted)
        taps = tensors[f"{name}_short_conv_w"].flatten(0, 1)
        width = {"d": taps.shape[0], "t": 4}
        given = {"u": mapped.flatten(2), "w": taps, "b": torch.zeros_like(taps[:, 0])}
        filtered = silu(output(load("short_convolution"), given, width)).view_as(mapped)
        if name != "v":
            filtered = filtered / filtered.norm(dim=-1, keepdim=True)
        parts.append(filtered.flatten(2))
    token = torch.cat(parts, -1)
    rows = torch.eye(token.shape[-1], dtype=torch.float64)
    bare = {
        "u": token,
        "W_Q": rows[8:18].reshape(2, 5, 34),
        "W_K": rows[18:28].reshape(2, 5, 34),
        "W_V": rows[28:34].reshape(2, 3, 34),
        "W_1": torch.nn.functional.pad(tensors["W_1"], (0, 26)),
        **{w: tensors[w] for w in ("W_2", "b_alpha")},
    }
    o = output(load("gla"), bare, {**dims, "d": 34})
    o = o / o.square().mean(-1, keepdim=True).sqrt()
    gate = silu(torch.einsum("hpd,bld->blhp", tensors["y_gate_W"], shifted))
    assert_close(output(load("gla_block"), tensors), o * gate)
