"""Exact entries: what is one function of symbols is one polynomial, and nothing else is."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dsfc.expr.table import row
from dsfc.kernel_proofs.exact import Exact, ExactNumbers, Undecided, polynomial_of, symbols
from dsfc.trusted.polynomial import POLYNOMIAL_ZERO, constant

X = symbols("x", (4,))
a, b, c, d = X


def exp(e: Exact) -> Exact:
    return ExactNumbers().apply(row("exp"), (np.asarray(e, object),), None)[()]


def test_symbols_are_all_different() -> None:
    assert len(set(symbols("x", (3, 2)).ravel())) == 6


def test_sums_and_products_are_those_of_a_ring() -> None:
    assert (a + b) * (a - b) == a * a - b * b
    assert 2 * a - a == a + 0
    assert 1 - a == -(a - 1)


@pytest.mark.parametrize(("left", "right"), [(a + b, a - b), (a * b, a), (a * a, a * 2), (a, b)])
def test_what_differs_is_not_equal(left: Exact, right: Exact) -> None:
    assert left != right


def test_an_exponential_of_a_sum_is_a_product() -> None:
    assert exp(a + b) == exp(a) * exp(b)
    assert exp(a - a) == Exact(constant(1))
    assert exp(a) * exp(-a) == Exact(constant(1))
    assert exp(a * b * 3) == exp(a * b) * exp(a * b) * exp(a * b)


def test_exponentials_of_what_differs_are_not_equal() -> None:
    assert exp(a) != exp(b)
    assert exp(a * 2) != exp(a)
    assert exp(a + 1) != exp(a)
    assert exp(a * b) != exp(a) * exp(b)


def test_exponents_may_be_fractions() -> None:
    half = a * Fraction(1, 2)
    assert exp(half) * exp(half * 3) * exp(-half) == exp(half) * exp(half) * exp(half)


def test_an_array_of_entries_is_added_up_exactly() -> None:
    assert X.sum() == a + b + c + d
    assert np.asarray(np.einsum("i,i->", X, X))[()] == a * a + b * b + c * c + d * d


@pytest.mark.parametrize("wrong", [0.5, float("inf"), "1", None])
def test_an_entry_is_no_floating_point_number(wrong: object) -> None:
    with pytest.raises(Undecided, match="no exact number"):
        polynomial_of(wrong)


def test_what_polynomials_do_not_express_is_not_decided() -> None:
    with pytest.raises(Undecided, match="compares"):
        np.maximum(X[:2], X[2:])
    with pytest.raises(Undecided, match="divides"):
        np.divide(X[:2], X[2:])
    with pytest.raises(Undecided, match="divides"):
        1 / a
    with pytest.raises(Undecided, match="tanh"):
        ExactNumbers().apply(row("tanh"), (X,), None)


def test_what_grows_too_large_is_not_decided() -> None:
    wide = symbols("x", (700,)).sum()
    with pytest.raises(Undecided, match="too large"):
        wide * wide


def test_what_is_solved_for_has_names_that_both_sides_know() -> None:
    numbers = ExactNumbers()
    first, second = numbers.solved(np.asarray([a + b * c, a * 2 + d], object))
    assert first != a + b * c
    beside = numbers.beside()
    again, more = beside.solved(np.asarray([b * c, a * 2 + d], object))
    assert again == first - a
    assert more == second


def test_beside_a_kernel_no_name_is_made() -> None:
    beside = ExactNumbers().beside()
    assert list(beside.solved(np.asarray([a + b], object))) == [a + b]
    assert beside.written[0].name is None


def test_nothing_has_no_name() -> None:
    numbers = ExactNumbers()
    (zero,) = numbers.solved(np.asarray([a - a], object))
    assert polynomial_of(zero) == POLYNOMIAL_ZERO
