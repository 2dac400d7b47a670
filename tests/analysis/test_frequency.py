"""Frequency responses are transforms of kernels; low-pass is not whenever decays are real."""

from __future__ import annotations

import numpy as np
import pytest

from dsfc.analysis.analysis import analyse
from dsfc.analysis.frequency import (
    agrees,
    frequencies,
    measured,
    non_negative,
    response,
    time_invariant,
)
from dsfc.analysis.kernel import impulse, kernel, token_matrices

MODES = """mixer modes {
  dims n
  input u
  param a, w : n
  state h : n
  h = sigmoid(a) * h[i-1] + u
  y = sum[n](w * h)
}"""

SUMS = """mixer sums {
  input u
  state h
  h = h[i-1] + u
  y = h
}"""


def _modes(at, decays: list[float], weights: list[float]):
    logits = np.log(decays) - np.log1p(-np.array(decays))
    return at(MODES, tokens=64, n=len(decays), params={"a": logits, "w": np.array(weights)})


def test_a_response_is_the_transform_of_the_kernel_by_hand(at) -> None:
    decays, weights = [0.5, 0.8], [1.0, 0.25]
    modes = _modes(at, decays, weights)
    found = response(token_matrices(modes.system, modes.point), frequencies(5))
    column = sum(w * np.array(a) ** np.arange(4096) for w, a in zip(weights, decays, strict=True))
    np.testing.assert_allclose(found.gains, np.abs(np.fft.rfft(column, 4096)[::512]))
    assert found.low_pass and found.peak == 0


def test_a_complex_system_with_a_skip_has_the_response_of_its_kernel(at) -> None:
    dlr = at("dlr", tokens=512, d=2, n=4, params={"a": np.array([0.5, 0.6, 0.7, 0.8])})
    column = impulse(dlr.system, dlr.point)
    matrices = token_matrices(dlr.system, dlr.point)
    assert agrees(matrices, column)
    found = response(matrices, frequencies(9))
    transform = np.fft.fft(column.values[:, 0], axis=0)[:257:32]
    np.testing.assert_allclose(found.gains, np.linalg.norm(transform, 2, axis=(1, 2)), rtol=1e-9)


def test_what_is_measured_of_a_fixed_system_is_its_response(at) -> None:
    modes = _modes(at, [0.5, 0.6], [1.0, -0.4])
    whole = kernel(modes.system, modes.structure, modes.point)
    assert time_invariant(whole)
    exact = response(token_matrices(modes.system, modes.point), frequencies(9))
    np.testing.assert_allclose(measured(whole, frequencies(9), 2).gains, exact.gains, rtol=1e-6)


def test_real_decays_are_not_low_pass_where_modes_cancel(at) -> None:
    """Weights 1/(1-λ) of unlike signs: H is 0 at θ = 0 (the printed Prop. 4.1 fails)."""
    decays = [0.4, 0.8]
    cancelling = _modes(at, decays, [1 - 0.4, -(1 - 0.8)])
    found = response(token_matrices(cancelling.system, cancelling.point), frequencies(65))
    assert found.gains[0] == pytest.approx(0, abs=1e-12) and not found.low_pass
    assert not non_negative(impulse(cancelling.system, cancelling.point))
    adding = _modes(at, decays, [1 - 0.4, 1 - 0.8])
    assert non_negative(impulse(adding.system, adding.point))


def test_a_mode_that_forgets_nothing_has_an_infinite_gain_at_0(at) -> None:
    sums = at(SUMS, tokens=8)
    found = response(token_matrices(sums.system, sums.point), frequencies(3))
    assert np.isinf(found.gains[0]) and found.gains[2] == pytest.approx(0.5)


def test_a_mode_that_grows_has_no_response(at) -> None:
    growing = at(SUMS.replace("h = h[i-1]", "h = -1.5 * h[i-1]"), tokens=6)
    found = analyse(growing.it.mixer, growing.system, growing.structure, growing.point).frequency
    assert found.exact is None and "grows" in found.why


@pytest.mark.ci
def test_an_analysis_says_why_there_is_no_response(at) -> None:
    said = {}
    for name in ("s6", "softmax", "short_convolution", "dlr_bidirectional", "lru"):
        mixer = at(name, tokens=6)
        f = analyse(mixer.it.mixer, mixer.system, mixer.structure, mixer.point).frequency
        said[name] = f if isinstance(f, str) else f.why
    assert said == {
        "s6": "its coefficients depend on the tokens",
        "softmax": "softmax attention has weights that depend on the tokens, and no state",
        "short_convolution": "it reads earlier tokens beside its state",
        "dlr_bidirectional": "it reads tokens to come",
        "lru": "",
    }
