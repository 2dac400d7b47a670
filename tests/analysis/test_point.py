"""Parameters start as specs say, at sizes that fit them."""

from __future__ import annotations

import numpy as np
import pytest

from dsfc.diagnostics.report import DiagnosticError


def test_fixed_initialisers_have_their_values(at) -> None:
    np.testing.assert_allclose(at("retnet", h=4).param("gamma"), 1 - 2.0 ** -(5 + np.arange(4)))


def test_lru_starts_on_the_ring_of_its_paper(at) -> None:
    """Orvieto et al. 2023: |λ|² uniform over (0, 1), γ the normalisation √(1 - |λ|²)."""
    lru = at("lru", n=8)
    squares = np.exp(-2 * np.exp(lru.param("nu")))
    np.testing.assert_allclose(np.sort(squares), (np.arange(8) + 0.5) / 8)
    np.testing.assert_allclose(np.exp(2 * lru.param("gamma")), 1 - squares)


def test_dlr_starts_in_the_ring_of_its_paper(at) -> None:
    """Gupta et al. 2022, §2.3: |λ| = e^{-a²} between e^{-1/4} and e^{-0.00025}."""
    sizes = np.exp(-(at("dlr", n=64).param("a") ** 2))
    assert np.exp(-0.25) <= sizes.min() < 0.9 < 0.999 < sizes.max() <= np.exp(-0.00025)


def test_draws_have_the_moments_of_their_distribution(at) -> None:
    weights = at("gla", d=64, h=4).param("W_Q")
    assert weights.shape == (4, 16, 64)
    assert abs(weights.std() / 0.02 - 1) < 0.05 and abs(weights.mean()) < 0.001


def test_two_parts_of_a_complex_draw_are_two_draws(at) -> None:
    b = at("lru", d=16, n=8).param("B")
    assert np.iscomplexobj(b) and abs(np.corrcoef(b.real.ravel(), b.imag.ravel())[0, 1]) < 0.3


def test_a_map_of_an_axis_to_itself_is_drawn_whole(at) -> None:
    matrix = at("linear_rnn", n=16).param("A")
    assert matrix.shape == (16, 16) and len(np.unique(matrix)) == 256


def test_random_features_are_orthogonal(at) -> None:
    features = at("performer", n=4, r=4).param("Omega")
    gram = np.einsum("...rn,...sn->...rs", features, features)
    off = gram - np.einsum("...rr->...r", gram)[..., None] * np.eye(gram.shape[-1])
    assert np.abs(off).max() < 1e-12


def test_a_parameter_without_an_initialiser_starts_small_if_it_is_a_map(at) -> None:
    text = """mixer m {
      dims d
      input u : d
      param W : d -> d
            b : d positive
      y = b * W u
    }"""
    plain = at(text, d=16)
    assert 0.01 < plain.param("W").std() < 0.03 and (plain.param("b") == 1).all()


def test_sizes_follow_those_chosen_and_the_spec(at) -> None:
    assert at("s6", d=64).point.sizes["r"] == 4
    with pytest.raises(DiagnosticError) as raised:
        at("s6", d=24)
    assert {d.code for d in raised.value.diagnostics} == {"E-DIM"}


def test_one_seed_gives_one_point(at) -> None:
    first, again = at("gla"), at("gla")
    assert all((first.point.params[n] == x).all() for n, x in again.point.params.items())
