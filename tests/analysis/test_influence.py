"""Influence is the norm of derivatives, and stays under the corrected bound."""

from __future__ import annotations

import numpy as np
import pytest

from dsfc.analysis.influence import Influence, influence, rate, slowest, unbounded
from dsfc.analysis.spectrum import spectra
from dsfc.system.evaluate import evaluate

GATED = """mixer gated {
  dims d
  input u : d
  param w : d
  state h : d
  h = sigmoid(w * u) * h[i-1] + u
  y = h
}"""


def _by_differences(mixer, step: float = 1e-6) -> np.ndarray:
    """‖∂y_t / ∂u_s‖ by central differences of the evaluated system."""
    u = mixer.u()
    squares = np.zeros((len(u), len(u)))
    for s in range(len(u)):
        for c in range(u.shape[1]):
            ends = []
            for sign in (1, -1):
                moved = u.copy()
                moved[s, c] += sign * step
                point = mixer.point
                run = evaluate(mixer.system, {"u": moved}, point.params, point.sizes)
                ends.append(run.outputs["y"].reshape(len(u), -1))
            squares[:, s] += (((ends[0] - ends[1]) / (2 * step)) ** 2).sum(axis=1)
    return np.sqrt(squares)


@pytest.mark.share(2)
@pytest.mark.parametrize("name", ["s6", "gla", "softmax", "normalized_attn"])
def test_influence_is_that_of_differences(at, name: str) -> None:
    mixer = at(name, tokens=4, **({} if name == "s6" else {"d": 8, "h": 2}))
    if name == "s6":
        mixer.point.params["W_B"][:] *= 20
        mixer.point.params["W_C"][:] *= 20
    found = influence(mixer.system, mixer.point, tuple(range(4)))
    want = _by_differences(mixer)
    np.testing.assert_allclose(found.values, want, atol=1e-7 * want.max())


def test_influence_of_a_linear_system_is_its_kernel(at) -> None:
    """I(t, s) = ‖C A^{t-s} B‖."""
    rnn = at("linear_rnn", d=3, n=4)
    found = influence(rnn.system, rnn.point, (7,)).by_distance
    a, b, c = (rnn.param(n) for n in "ABC")
    want = [np.linalg.norm(c @ np.linalg.matrix_power(a, k) @ b) for k in range(8)]
    np.testing.assert_allclose(found, want)


def test_influence_stays_under_the_corrected_recency_bound(at) -> None:
    """|∂y_t/∂u_s| ≤ C_c a^{t-s} (C_f' + C_A' C_f / (1 - a)): Λ = σ(w u), f = u, c = 1."""
    w = np.array([1.5])
    gated = at(GATED, tokens=24, d=1, params={"w": w})
    found = influence(gated.system, gated.point, tuple(range(24))).values
    gates = 1 / (1 + np.exp(-w * gated.u()))
    a = slowest(spectra(gated.system, gated.point))
    assert a == pytest.approx(gates.max())
    slope = (w * gates * (1 - gates)).max()
    constant = 1 + slope * np.abs(gated.u()).max() / (1 - a)
    t, s = np.tril_indices(24, -1)
    assert (found[t, s] <= a ** (t - s) * constant).all()
    assert rate(found[-1, ::-1]) > np.log(1 / a)


def test_softmax_at_the_start_weighs_all_tokens_alike(at) -> None:
    """Small weights: influence of a token on the next t is 1 / t of the values' map."""
    attn = at("softmax", tokens=16, d=8, h=1)
    found = influence(attn.system, attn.point, (15,)).by_distance
    np.testing.assert_allclose(found, np.linalg.norm(attn.param("W_V")) / 16, rtol=0.05)


def test_a_rate_is_the_slope_of_the_logarithm() -> None:
    assert rate(np.exp(-0.3 * np.arange(9))) == pytest.approx(0.3)
    assert rate(np.array([1.0, 0.0, 0.0])) is None
    assert rate(np.array([1.0, 0.5])) is None


def test_distances_are_those_from_the_last_row() -> None:
    shown = Influence((1, 3), np.array([[5.0, 6.0, 0, 0], [1.0, 2.0, 3.0, 4.0]]))
    assert shown.by_distance.tolist() == [4, 3, 2, 1]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("s6", None),
        ("gla", None),
        ("softmax", "no state"),
        ("linear_attn", "not below 1"),
        ("deltanet", "not diagonal"),
        ("dlr_bidirectional", "tokens to come"),
        ("gla_block", "beside its state"),
        ("lnssm", None),
        ("gsa", "read states"),
    ],
)
def test_the_bound_is_claimed_where_its_conditions_hold(at, name: str, why: str | None) -> None:
    mixer = at(name, tokens=4)
    found = unbounded(mixer.system, mixer.structure, spectra(mixer.system, mixer.point))
    assert found is None if why is None else why in found
