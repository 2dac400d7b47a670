"""Over-smoothing: sharpness of tokens by hand, and the corrected bound of channels."""

from __future__ import annotations

import numpy as np
import pytest

from dsfc.analysis.smoothing import bound, sharpness, smoothing


def test_sharpness_tells_equal_tokens_from_orthogonal_ones() -> None:
    assert sharpness(np.ones((5, 3))) == pytest.approx(0)
    assert sharpness(np.eye(4)) == pytest.approx(1)
    assert sharpness(np.array([[1.0], [-1.0], [0.0]])) == pytest.approx(3 / 2)
    assert sharpness(np.zeros((4, 2))) == 0
    with pytest.raises(ValueError, match="two tokens"):
        sharpness(np.ones((1, 3)))


def test_the_bound_is_of_channels_where_the_printed_one_fails() -> None:
    """N = 2, T = 3: ‖h_t - h_s‖₁ = 3 is above the printed bound 2, and is the corrected one."""
    decays = np.array([[0.0, 0], [0, 1], [0, 0]])
    inputs = np.array([[-1.0, -1], [0, 0], [-1, 1]])
    printed = max(np.abs(a - b).sum() for a in inputs for b in inputs)
    assert printed == 2 and bound(decays, inputs).sum() == 3


def test_mambas_slowest_state_never_satisfies_the_condition(at) -> None:
    """A = -1: e^{-Δ} + Δ > 1 for every Δ > 0; others satisfy it at small Δ."""
    s6 = at("s6", tokens=16, n=1)
    (only,) = smoothing(s6.system, s6.structure, s6.point)
    assert only.coupling == "−log λ / a" and only.violations == 1 and only.attained is None
    more = at("s6", tokens=16, n=4)
    (found,) = smoothing(more.system, more.structure, more.point)
    assert found.violations == 0.25 and found.covered == 0.75


def test_hgrn2_satisfies_the_condition_and_stays_under_the_bound(at) -> None:
    rng = np.random.default_rng(0)
    net = at("hgrn2", tokens=16, d=8, h=2, params={"W_f": rng.normal(size=(2, 4, 8))})
    (found,) = smoothing(net.system, net.structure, net.point)
    assert found.violations == 0 and found.covered == 1 - found.one_sided
    assert found.covered > 0.5 and 0 < found.attained <= 1


def test_a_griffin_gate_violates_the_condition_everywhere(at) -> None:
    """α + √(1 - α²) > 1 on (0, 1)."""
    net = at("rg_lru", tokens=8)
    (found,) = smoothing(net.system, net.structure, net.point)
    assert found.coupling == "√(1 − λ²)" and found.violations == 1
