"""Sizes of a layout map: what they are worth, and what shapes tell of their names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsfc.layouts.dims import Dim, parse_dim, solve

NAMES = ("d", "h", "n", "p")
terms = st.tuples(st.integers(1, 9), st.lists(st.sampled_from(NAMES), max_size=3).map(tuple))
dims = st.lists(terms, min_size=1, max_size=4).map(lambda it: Dim(tuple(it)))


@given(dims)
def test_a_size_is_read_as_it_is_written(dim: Dim) -> None:
    assert parse_dim(str(dim)) == dim


@pytest.mark.parametrize(
    ("text", "value"), [("3", 3), ("2*h*p + 2*n + h", 2 * 4 * 5 + 2 * 3 + 4), ("h * 2*h", 32)]
)
def test_a_size_is_a_sum_of_products(text: str, value: int) -> None:
    assert parse_dim(text).value({"h": 4, "n": 3, "p": 5}) == value


@pytest.mark.parametrize(
    "text", ["", "2*", "+n", "h-1", "h**2", "(h)", "h/2", "__import__('os')", "h.n", "1e3", "²"]
)
def test_what_is_no_such_sum_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no sum of products"):
        parse_dim(text)


def test_sizes_follow_from_one_another() -> None:
    """The published layer of Mamba-2: heads, then their width, then the state."""
    rows = [("h*p + 2*n", 30), ("h*p", 24), ("h", 6), ("d", 12)]
    assert solve([(parse_dim(text), size) for text, size in rows], {}) == {
        "h": 6,
        "p": 4,
        "n": 3,
        "d": 12,
    }


@pytest.mark.parametrize(
    ("text", "size"),
    [("k*g", 6), ("k*k", 9), ("2*k", 5), ("k + 3", 3), ("k + 3", 2)],
    ids=["two names", "a square", "no whole number", "none", "fewer than none"],
)
def test_what_does_not_follow_is_left_open(text: str, size: int) -> None:
    assert solve([(parse_dim(text), size)], {}) == {}


@given(dims, st.fixed_dictionaries({name: st.integers(1, 9) for name in NAMES}))
def test_what_follows_is_right(dim: Dim, sizes: dict[str, int]) -> None:
    """With all names but one known, an equation that holds tells the last or nothing."""
    for name in NAMES:
        known = {n: k for n, k in sizes.items() if n != name}
        assert solve([(dim, dim.value(sizes))], known).get(name, sizes[name]) == sizes[name]
