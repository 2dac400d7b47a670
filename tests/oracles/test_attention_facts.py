"""Facts of the literature about attention, seen on the oracles.

Each oracle is written on its own, so an equality between two of them is evidence for both.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest
import torch
from torch import Tensor
from torch.nn.functional import softplus
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


@pytest.mark.parametrize("name", ["softmax", "linear_attn", "taylor_softmax", "performer", "lln"])
def test_self_normalised_attention_is_a_convex_combination_of_values(
    name: str, load: Load, draw: Draw
) -> None:
    tensors = draw(load(name))
    y, v = output(load(name), tensors), values(tensors)
    assert (y <= v.cummax(1).values + 1e-12).all()
    assert (y >= v.cummin(1).values - 1e-12).all()


def test_softmax_is_the_platform_s_attention(load: Load, draw: Draw) -> None:
    tensors = draw(load("softmax"))
    q, k = (torch.einsum("hnd,bld->bhln", tensors[w], tensors["u"]) for w in ("W_Q", "W_K"))
    v = values(tensors).transpose(1, 2)
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    assert_close(output(load("softmax"), tensors), expected.transpose(1, 2))


def test_taylor_softmax_tends_to_softmax_for_small_scores(load: Load, draw: Draw) -> None:
    """The remainder is of third order: scores half as large differ by an eighth."""
    tensors = draw(load("softmax"))
    tensors["W_Q"] = 2e-3 * tensors["W_Q"]
    whole = output(load("softmax"), tensors) - output(load("taylor_softmax"), tensors)
    tensors["W_Q"] = tensors["W_Q"] / 2
    half = output(load("softmax"), tensors) - output(load("taylor_softmax"), tensors)
    assert 7.9 < (whole.norm() / half.norm()).item() < 8.1


def test_performer_estimates_softmax_without_bias(load: Load, draw: Draw) -> None:
    dims = {"d": 3, "h": 1, "n": 2, "p": 2, "r": 200_000}
    tensors = draw(load("performer"), batch=1, length=4, dims=dims)
    # Gaussian rows have independent directions and lengths distributed as χ_n.
    tensors["Omega"] = tensors["Omega"] / 0.6
    y = output(load("performer"), tensors, dims)
    assert_close(y, output(load("softmax"), tensors, dims), rtol=0, atol=1e-2)


@pytest.mark.parametrize(
    ("name", "scale"),
    [
        ("normalized_attn", torch.exp),
        ("normalized_attn_softplus", softplus),
        ("normalized_attn_sigmoid", torch.sigmoid),
    ],
)
def test_normalised_attention_is_generalised_attention_with_its_scale(
    name: str, scale: Callable[[Tensor], Tensor], load: Load, draw: Draw
) -> None:
    tensors = draw(load(name))
    tensors["eta"] = scale(tensors["u"] @ tensors["w_eta"].T + tensors["b_eta"])
    assert_close(output(load(name), tensors), output(load("generalized_attn"), tensors))


def test_multihead_attention_maps_the_heads_to_the_output(load: Load, draw: Draw) -> None:
    oracle = load("normalized_attn_multihead")
    tensors = draw(oracle)
    o = output(load("normalized_attn"), tensors, oracle.DIMS)
    assert_close(output(oracle, tensors), torch.einsum("dhp,blhp->bld", tensors["W_O"], o))


def test_the_default_features_of_separable_attention(load: Load, draw: Draw) -> None:
    oracle = load("separable")
    tensors = draw(oracle)
    features = {
        "phi": lambda x: torch.tanh(x @ tensors["phi_A"].T),
        "psi": lambda x: torch.tanh(x @ tensors["psi_A"].T),
    }
    assert_close(
        oracle.forward(tensors, oracle.DIMS, abstracts=features)[0], output(oracle, tensors)
    )


def test_identity_features_make_separable_attention_generalised(load: Load, draw: Draw) -> None:
    oracle = load("separable")
    tensors = draw(oracle)

    def identity(x: Tensor) -> Tensor:
        return x

    y, _ = oracle.forward(tensors, oracle.DIMS, abstracts={"phi": identity, "psi": identity})
    assert_close(y, output(load("generalized_attn"), tensors))


def test_eq_15_as_printed_is_another_map(load: Load, draw: Draw) -> None:
    """Λ_i = η_{i-1}/η_i needs η_i in B_i; Sieber et al. 2024 eq. 15 prints η_{i-1}, which fails."""
    oracle = load("normalized_attn")
    tensors = draw(oracle, batch=1)
    u = tensors["u"]
    eta = torch.exp(u @ tensors["w_eta"].T + tensors["b_eta"])
    q, k = (torch.einsum("hnd,bld->blhn", tensors[w], u) for w in ("W_Q", "W_K"))
    v = values(tensors)

    def by_ratio_of_scales(in_drive: Callable[[int], Tensor]) -> Tensor:
        state, ys = torch.zeros(1, 2, 4, 3, dtype=u.dtype), []
        for i in range(u.shape[1]):
            decay = (eta[:, max(i - 1, 0)] / eta[:, i])[..., None, None]
            drive = k[:, i, :, :, None] * v[:, i, :, None, :] / in_drive(i)[..., None, None]
            state = decay * state + drive
            ys.append((q[:, i, :, :, None] * state).sum(-2))
        return torch.stack(ys, 1)

    corrected = by_ratio_of_scales(lambda i: eta[:, i])
    printed = by_ratio_of_scales(lambda i: eta[:, max(i - 1, 0)])
    assert_close(output(oracle, tensors), corrected)
    assert (output(oracle, tensors) - printed).abs().max() > 1e-2
