"""Which bounds are found, and why none is."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pytest

from dsfc.bounds.chain import Chain, check, side_by_side
from dsfc.bounds.search import search

QKV = "abs(q) <= 1, abs(k) <= 1, abs(v) <= 1"


def bound(question) -> float:
    chain = search(question)
    assert isinstance(chain, Chain), chain
    check(chain)
    return float(chain.bound)


def test_a_window_leaves_out_the_tail_of_a_geometric_series(ask) -> None:
    expected = 4 * 0.9**8 / (1 - 0.9)
    assert bound(ask("decay", "windowed", QKV, n=4)) == pytest.approx(expected)
    assert bound(ask("decay_state", "windowed", QKV, n=4)) == pytest.approx(expected)


def test_a_tail_ends_where_sequences_do(ask) -> None:
    assert bound(ask("decay", "windowed", f"{QKV}, L <= 8", n=4)) == 0
    assert bound(ask("decay", "windowed", f"{QKV}, L <= 9", n=4)) == pytest.approx(4 * 0.9**8)


def test_taps_of_a_filter_are_a_window(ask) -> None:
    assert bound(ask("recurrent", "taps", "abs(u) <= 1")) == pytest.approx(2 * 0.5**8)
    assert bound(ask("taps", "recurrent", "abs(u) <= 1")) == pytest.approx(2 * 0.5**8)


def test_near_decays_are_apart_by_a_derivative(ask) -> None:
    expected = 4 * 1e-4 / (1 - 0.9001) ** 2
    assert bound(ask("decay", "decay_near", QKV, n=4)) == pytest.approx(expected)
    assert bound(ask("decay_state", "decay_near", QKV, n=4)) == pytest.approx(expected, rel=0.01)


def test_a_state_that_starts_elsewhere_forgets_it(ask) -> None:
    where = "abs(u) <= 2, λ <= 0.9, abs(s) <= 1"
    assert bound(ask("average", "average_started", where)) == pytest.approx(0.9)


def test_a_floor_that_is_never_reached_counts_for_nothing(ask) -> None:
    where = "abs(u) <= 1, norm[d](u) >= 0.1"
    assert bound(ask("unit_length", "unit_length_6", where, d=4)) == 0
    assert bound(ask("linear", "linear_floor", QKV, n=4)) == 0


def test_a_floor_that_may_be_reached_is_not_near(ask) -> None:
    chain = search(ask("unit_length", "unit_length_6", "abs(u) <= 1", d=4))
    assert isinstance(chain, str) or chain.bound > 1


def test_the_mean_with_taylor_weights_moves_by_half_the_relative_error(ask) -> None:
    where = "abs(q) <= 0.5, abs(k) <= 0.5, abs(v) <= 1"
    s = 0.5
    low = (1 + s + s * s / 2) * math.exp(-s)
    high = (1 - s + s * s / 2) * math.exp(s)
    expected = 2 * math.tanh(math.log(high / low) / 4)
    found = bound(ask("softmax", "taylor_softmax", where, n=4))
    assert found == pytest.approx(expected)
    assert bound(ask("taylor_softmax", "softmax", where, n=4)) == pytest.approx(expected)


def test_what_is_the_same_is_0_apart_on_every_domain(ask) -> None:
    for name in ("decay_state", "gated", "softmax", "s6", "gla", "deltanet"):
        assert bound(ask(name, name, n=2, d=2, p=2, h=1)) == 0


def test_a_bound_needs_bounds(ask) -> None:
    assert "no bound on this domain" in str(search(ask("decay", "windowed", "abs(q) <= 1", n=4)))


def test_a_bound_says_which_size_it_needs(ask) -> None:
    assert "no size is given of d, n" in str(search(ask("decay", "windowed", QKV)))


def test_a_decay_without_bound_needs_a_length(ask) -> None:
    where = "abs(u) <= 2"
    assert not isinstance(search(ask("average", "average_near", where)), Chain)
    assert bound(ask("average", "average_near", f"{where}, L <= 3")) < 1


def test_other_inputs_are_no_counterparts(ask) -> None:
    chain = search(ask("recurrent", "renamed", "abs(u) <= 1, abs(w) <= 1"))
    assert not isinstance(chain, Chain) or chain.bound >= 2


def test_bounds_are_rounded_upward(ask) -> None:
    chain = search(ask("decay", "windowed", QKV, n=4))
    assert isinstance(chain, Chain)
    # The decay is 0.9 rounded upward to a double.
    assert chain.bound >= 40 * Fraction(9, 10) ** 8


def test_a_factor_that_stands_twice_counts_twice(ask) -> None:
    found = bound(ask("squared", "squared_near", "abs(u) <= 1"))
    exact = 2.001**2 * math.exp(2.001) - 2**2 * math.exp(2)
    assert exact <= found <= 1.01 * exact


def test_a_sum_over_the_taps_is_no_lag(ask) -> None:
    chain = search(ask("weighted_taps", "recurrent", "abs(u) <= 1"))
    assert isinstance(chain, str) or chain.bound >= 1


@pytest.mark.parametrize(
    ("a", "b", "where"),
    [
        ("turned_mean", "turned_mean_sharper", "abs(q) <= 1, abs(k) <= 1, abs(v) <= 3"),
        ("turned_weights", "turned_weights_further", "abs(q) <= 1, abs(k) <= 3.3"),
        ("sine_of_imaginary", "value_itself", "abs(v) <= 5"),
    ],
)
def test_moduli_of_complex_numbers_bound_no_mean_and_no_sine(ask, a, b, where) -> None:
    assert not isinstance(search(ask(a, b, where, d=1, h=1, n=1, p=1)), Chain)


def test_sizes_that_do_not_follow_from_each_other_are_no_question(ask) -> None:
    question = ask("decay", "windowed", QKV, n=4)
    side_by_side(question)
    with pytest.raises(ValueError, match="stands there twice"):
        side_by_side(replace(question, sizes=(("n", 256), *question.sizes)))
