"""The bounds of truncated series hold for numbers, and are not far from what happens."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dsfc
from dsfc.structure.truncation import truncations


def series(s: np.ndarray, order: int) -> np.ndarray:
    return sum(s**r / math.factorial(r) for r in range(order + 1))


@given(st.floats(-3, 3), st.integers(0, 6))
def test_the_series_is_off_by_no_more_than_its_bound(s: float, order: int) -> None:
    off = abs(math.exp(s) - series(np.asarray(s), order))
    bound = abs(s) ** (order + 1) / math.factorial(order + 1) * math.exp(max(s, 0.0))
    assert off <= bound * (1 + 1e-9) + 1e-13


@given(
    st.lists(st.floats(-0.7, 0.7), min_size=1, max_size=6),
    st.integers(1, 6),
    st.randoms(use_true_random=False),
)
def test_a_mean_is_off_by_no_more_than_its_bound(scores, order: int, random) -> None:
    s = np.asarray(scores)
    v = np.asarray([random.uniform(-1, 1) for _ in scores])
    radius = np.abs(s).max()
    share = radius ** (order + 1) * math.exp(radius) / math.factorial(order + 1)
    if share >= 1:
        return
    exact, cut = np.exp(s), series(s, order)
    off = abs((exact @ v) / exact.sum() - (cut @ v) / cut.sum())
    assert off <= 2 * share / (1 - share) * np.abs(v).max() + 1e-12


@pytest.mark.parametrize(("order", "words"), [(2, "|s|^3 / 6 ·"), (4, "|s|^5 / 120 ·")])
def test_the_order_of_the_spec_is_that_of_the_bound(order: int, words: str, tmp_path) -> None:
    file = tmp_path / "cut.dsf"
    file.write_text(f"mixer cut extends taylor_softmax {{ const P = {order} }}", encoding="utf-8")
    assert words in truncations(dsfc.load(file).system)


def test_what_has_no_series_has_no_bound() -> None:
    assert truncations(dsfc.load("linear_attn").system) == ""


def test_softmax_has_no_finite_state_and_is_told_what_has() -> None:
    told = truncations(dsfc.load("softmax").system)
    assert told.startswith("finite truncations\n  e^s, s = n^(-1/2) * q · k[j]: taylor[p](s)")
    assert "of n^r numbers per channel" in told and "|s|^(p+1) / (p+1)! ·" in told
    assert told.count("off by at most |s|") == 1
