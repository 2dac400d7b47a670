"""Spectra are those of formulas by hand, in each gauge."""

from __future__ import annotations

import numpy as np
import pytest

from dsfc.analysis.spectrum import (
    EDGES,
    attention_ratios,
    half_lives,
    histogram,
    memory,
    spectra,
)


def test_a_decay_per_head_is_that_of_its_head(at) -> None:
    retnet = at("retnet", h=4)
    (found,) = spectra(retnet.system, retnet.point)
    assert found.fixed and found.values.shape == (1, 4, 1)
    np.testing.assert_allclose(found.values[0, :, 0], 1 - 2.0 ** -(5 + np.arange(4)))


def test_a_selective_decay_is_its_formula(at) -> None:
    """S6: exp(-Δ a) with Δ = softplus(W_Δ W_u u + b_Δ)."""
    s6 = at("s6", d=16, n=3)
    (found,) = spectra(s6.system, s6.point)
    hidden = s6.u() @ s6.param("W_u").T @ s6.param("W_Delta").T + s6.param("b_Delta")
    want = np.exp(-np.log1p(np.exp(hidden))[..., None] * np.exp(s6.param("a")))
    np.testing.assert_allclose(np.sort(found.values.reshape(8, -1)), np.sort(want.reshape(8, -1)))


def test_a_delta_rule_has_one_eigenvalue_apart_from_1_in_each_head(at) -> None:
    """Λ = I - β k kᵀ with ‖k‖ = 1: 1 - β once, 1 else."""
    net = at("deltanet", h=2, d=16)
    (found,) = spectra(net.system, net.point)
    beta = 1 / (1 + np.exp(-net.u() @ net.param("w_beta").T))
    values = np.sort(found.values.real)
    assert values.shape == (8, 2, 8)
    np.testing.assert_allclose(values[..., 0], 1 - beta, atol=1e-5)
    np.testing.assert_allclose(values[..., 1:], 1, atol=1e-5)


def test_a_dense_transition_has_the_eigenvalues_of_its_matrix(at) -> None:
    rnn = at("linear_rnn", n=6)
    (found,) = spectra(rnn.system, rnn.point)
    want = np.linalg.eigvals(rnn.param("A"))
    np.testing.assert_allclose(np.sort_complex(found.values[0, 0]), np.sort_complex(want))


def test_normalised_attention_has_the_ratios_of_its_paper_in_its_gauge(at) -> None:
    """η = exp(w u + b): λ_i = exp(w (u_{i-1} - u_i)), and Λ = I in the lowered gauge."""
    attn = at(
        "normalized_attn", h=2, params={"w_eta": np.random.default_rng(0).normal(size=(2, 16))}
    )
    lowered, paper = spectra(attn.system, attn.point)
    assert not lowered.paper and paper.paper and (lowered.values == 1).all()
    logs = attn.u() @ attn.param("w_eta").T
    np.testing.assert_allclose(paper.values[..., 0], np.exp(logs[:-1] - logs[1:]))
    assert paper.values.max() > 1 > paper.values.min()


def test_ratios_of_softmax_are_those_of_sums_of_exponentials(at) -> None:
    attn = at("softmax", h=2, d=8, params={"W_Q": np.random.default_rng(1).normal(size=(2, 4, 8))})
    found = attention_ratios(attn.system, attn.structure.attentions[0], attn.point)
    q, k = (np.einsum("hnd,ld->lhn", attn.param(w), attn.u()) for w in ("W_Q", "W_K"))
    eta = np.array(
        [np.exp(np.einsum("hn,jhn->jh", q[i], k[: i + 1]) / 2).sum(axis=0) for i in range(8)]
    )
    np.testing.assert_allclose(found[..., 0], eta[:-1] / eta[1:])


def test_ratios_of_softmax_do_not_overflow(at) -> None:
    attn = at("softmax", h=1, d=4, params={"W_Q": 1e4 * np.ones((1, 4, 4))})
    found = attention_ratios(attn.system, attn.structure.attentions[0], attn.point)
    assert not np.isnan(found).any()


def test_a_half_life_is_the_time_to_one_half() -> None:
    assert half_lives(np.array([0.5, 0.25, -0.5j, 1.0, 1.5])).tolist() == pytest.approx(
        [1, 0.5, 1, np.inf, np.inf]
    )
    assert half_lives(np.array([0.0])) == 0
    assert memory(np.full(9, 0.5)) == pytest.approx((1, 1, 1))


def test_a_histogram_has_all_values() -> None:
    shares = histogram(np.array([0.0, 0.95, 1.0, -3.0]))
    assert len(shares) == len(EDGES) - 1 and shares.sum() == 1
    assert shares[0] == shares[-1] == 0.25
