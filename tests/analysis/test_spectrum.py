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


PAIR = """mixer pair {{
  dims d
  input u : d
  param W, V : d -> d
  param a, b : d unit
  state s, t : d {direction}
  w = V u
  s = {s}
  t = {t}
  y = s + t
}}
"""


@pytest.mark.parametrize("direction, at_", [("", "i-1"), ("backward", "i+1")])
def test_states_that_read_each_other_have_the_eigenvalues_of_their_joint_matrix(
    at, direction, at_
) -> None:
    """[[a, b], [-b, a]] has a ± i b, in each channel."""
    first, second = f"a * s[{at_}] + b * t[{at_}] + W u", f"a * t[{at_}] - b * s[{at_}]"
    pair = at(
        PAIR.format(direction=direction, s=first, t=second),
        d=3,
        params={"a": np.array([0.5, 0.25, 0.1]), "b": np.array([0.5, 0.3, 0.0])},
    )
    (found,) = spectra(pair.system, pair.point)
    assert found.state == "s and t" and found.fixed and found.values.shape == (1, 1, 6)
    want = [0.5 + 0.5j, 0.5 - 0.5j, 0.25 + 0.3j, 0.25 - 0.3j, 0.1, 0.1]
    np.testing.assert_allclose(np.sort_complex(found.values[0, 0]), np.sort_complex(want))


def test_a_joint_matrix_has_the_steps_of_its_states_in_order(at) -> None:
    """t reads the new s: [[a, b], [-b a, a - b²]], of determinant a²."""
    text = PAIR.format(direction="", s="a * s[i-1] + b * t[i-1] + W u", t="a * t[i-1] - b * s")
    a, b = 0.5, 0.25
    pair = at(text, d=1, params={"a": np.full(1, a), "b": np.full(1, b)})
    (found,) = spectra(pair.system, pair.point)
    want = np.linalg.eigvals(np.array([[a, b], [-b * a, a - b * b]]))
    np.testing.assert_allclose(np.sort_complex(found.values[0, 0]), np.sort_complex(want))


def test_a_rotation_by_tokens_has_modulus_1_and_their_angle(at) -> None:
    first = "cos(w) * s[i-1] - sin(w) * t[i-1] + W u"
    second = "sin(w) * s[i-1] + cos(w) * t[i-1]"
    pair = at(PAIR.format(direction="", s=first, t=second), d=2)
    (found,) = spectra(pair.system, pair.point)
    angles = pair.u() @ pair.param("V").T
    want = np.concatenate([np.exp(1j * angles), np.exp(-1j * angles)], axis=1)
    np.testing.assert_allclose(
        np.sort(np.angle(found.values[:, 0])), np.sort(np.angle(want)), atol=1e-12
    )
    np.testing.assert_allclose(np.abs(found.values), 1)


def test_states_of_different_axes_are_one_vector(at) -> None:
    """x' = A x + b z, z' = Σ x / 2 + z / 4: 3 + 1 entries."""
    mixed = at(
        """mixer mixed {
          dims d, n = 3
          input u : d
          param w : d -> n
          param b : n = 0.3
          state x : n
          state z
          x = 0.5 * x[i-1] + b * z[i-1] + w u
          z = 0.25 * z[i-1] + 0.5 * sum[n](x[i-1])
          y = sum[n](x) + z
        }""",
        d=2,
    )
    (found,) = spectra(mixed.system, mixed.point)
    matrix = np.diag([0.5, 0.5, 0.5, 0.25])
    matrix[:3, 3], matrix[3, :3] = 0.3, 0.5
    want = np.linalg.eigvals(matrix)
    np.testing.assert_allclose(np.sort(found.values[0, 0]), np.sort(want))


def test_a_matrix_may_depend_on_an_earlier_state(at) -> None:
    """Λ = I - k kᵀ / ‖k‖² of keys that a state makes: 0 once in each head, 1 else."""
    two = at(
        """mixer two {
          dims d, heads h = 2, n = d/h, p = d/h
          input u : d
          param W_K : d -> h × n; W_V : d -> h × p
          state z : h × n
          z = 0.5 * z[i-1] + W_K u
          k = l2norm[n](z)
          state S : h × n × p
          S = S[i-1] - k ⊗ (k · S[i-1]) + k ⊗ (W_V u)
          y = k · S
        }""",
        tokens=3,
        d=8,
    )
    z, matrix = spectra(two.system, two.point)
    assert z.values.shape == (1, 1, 1) and matrix.values.shape == (3, 2, 4)
    sizes = np.sort(np.abs(matrix.values))
    np.testing.assert_allclose(sizes[..., 0], 0, atol=1e-5)
    np.testing.assert_allclose(sizes[..., 1:], 1, atol=1e-5)


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
