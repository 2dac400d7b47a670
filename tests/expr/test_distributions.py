"""Sequences that initialisers start from, against the matrices of their papers."""

from __future__ import annotations

import numpy as np
import pytest

from dsfc.expr.distributions import DISTRIBUTIONS

SIZES = (1, 2, 3, 8, 33, 64)


def hippo_legs(size: int) -> tuple[np.ndarray, np.ndarray]:
    """A and B as printed (Gu et al. 2020, Theorem 2; Gu et al. 2022, eq. 2, with its sign)."""
    a, b = np.zeros((size, size)), np.zeros(size)
    for n in range(size):
        b[n] = (2 * n + 1) ** 0.5
        for k in range(size):
            if n > k:
                a[n, k] = -((2 * n + 1) ** 0.5) * (2 * k + 1) ** 0.5
            elif n == k:
                a[n, k] = -(n + 1)
    return a, b


def sequences(size: int) -> tuple[np.ndarray, np.ndarray]:
    found = [DISTRIBUTIONS[n].sequence for n in ("legs_frequency", "legs_low_rank")]
    return tuple(f(size) for f in found if f is not None)


@pytest.mark.parametrize("size", SIZES)
def test_the_diagonal_and_its_low_rank_part_are_hippo_legs(size: int) -> None:
    """The same B^T (s - A)^-1 B, which no change of basis changes; eigenvalues are -1, …, -N."""
    omega, low = sequences(size)
    diagonal = np.diag(-0.5 + 1j * omega) - np.outer(low, low)
    a, b = hippo_legs(size)
    for s in (0.1, 1 + 3j, size + 0.5j * size**2):
        want = b @ np.linalg.solve(s * np.eye(size) - a, b)
        got = 2 * low @ np.linalg.solve(s * np.eye(size) - diagonal, low)
        assert abs(got - want) < 1e-12 * abs(want) * size
    if size <= 8:  # beyond, eigenvalues of such a matrix say little
        eigenvalues = np.sort_complex(np.linalg.eigvals(diagonal))
        assert np.abs(eigenvalues - np.arange(-size, 0)).max() < 1e-6


@pytest.mark.parametrize("size", SIZES)
def test_the_low_rank_part_makes_it_normal(size: int) -> None:
    """ω and P² are eigenvalues and weights of a skew matrix: those of one equation in ω.

    With S v = iω v written as a recurrence in partial sums of √a v, the last sum is minus the first
    where Σ atan(ω / a) is half of π apart from a multiple, and |V^* √a|² is the inverse slope.
    """
    omega, low = sequences(size)
    a = np.arange(size) + 0.5
    turns = np.arctan(omega[:, None] / a).sum(1)
    assert np.abs(turns - np.pi * (np.arange(size) + 0.5 - size / 2)).max() < 1e-12 * size
    slope = (a / (a**2 + omega[:, None] ** 2)).sum(1)
    assert np.abs(low * slope**0.5 - 1).max() < 1e-12 * size
    assert (low > 0).all()
    # Pairs of conjugates: the last half of 2N has positive frequencies.
    assert np.abs(omega + omega[::-1]).max() < 1e-12 * size**2
