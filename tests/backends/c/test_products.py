"""Products, triangles and inverses of the header are NumPy's, and write nothing else."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

TEXT = """
void run(const int64_t *n, const real *a, const real *b, real *c) {
  dot(n[0], n[1], n[2], a, n[3], n[4], b, n[5], n[6], c, n[7], (int)n[8], (int)n[9]);
}
void invert(int64_t n, const real *a, int64_t a_row, real *c, int64_t c_row) {
  inverse_unit(n, a, a_row, c, c_row);
}
"""
ALL_TERMS, TERMS_UP_TO_ROW, TERMS_FROM_ROW, COLUMNS_UP_TO_ROW = range(4)
GUARD = -77.0
EPS = {False: 2.0**-23, True: 2.0**-52}
DTYPE = {False: np.float32, True: np.float64}
Build = Callable[..., ctypes.CDLL]
both = pytest.mark.parametrize("is_double", [False, True], ids=["float", "double"])


def laid_out(x: np.ndarray, is_transposed: bool) -> np.ndarray:
    """The same matrix, in rows or columns of three entries more than it needs."""
    rows, columns = x.shape[::-1] if is_transposed else x.shape
    memory = np.full((rows, columns + 3), np.nan, x.dtype)
    memory[:, :columns] = x.T if is_transposed else x
    view = memory[:, :columns]
    return view.T if is_transposed else view


def address(x: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(x.ctypes.data)


def check(library, is_double, m, n, k, transposed, accumulate, terms=ALL_TERMS, seed=0) -> None:
    draw = np.random.default_rng((m, n, k, seed))
    dtype = DTYPE[is_double]
    a, b = draw.normal(size=(m, k)).astype(dtype), draw.normal(size=(k, n)).astype(dtype)
    if terms == TERMS_UP_TO_ROW:
        a = np.tril(a)
    if terms == TERMS_FROM_ROW:
        a = np.triu(a)
    left, right = laid_out(a, transposed[0]), laid_out(b, transposed[1])
    memory = np.full((m + 2, n + 5), GUARD, dtype)
    c = memory[1 : m + 1, 2 : n + 2]
    c[:] = first = draw.normal(size=(m, n)).astype(dtype)
    strides = [s // dtype().itemsize for s in (*left.strides, *right.strides, c.strides[0])]
    numbers = (ctypes.c_int64 * 10)(m, n, k, *strides, accumulate, terms)
    library.run(numbers, address(left), address(right), address(c))
    want = a.astype(np.longdouble) @ b.astype(np.longdouble) + (first if accumulate else 0)
    size = np.abs(a).astype(np.longdouble) @ np.abs(b) + np.abs(first)
    error = np.abs(c - want) - (k + 2) * EPS[is_double] * size
    if terms == COLUMNS_UP_TO_ROW:
        error = np.tril(error)
    assert error.max(initial=0) <= 0, (m, n, k, transposed, accumulate, terms)
    memory[1 : m + 1, 2 : n + 2] = GUARD
    assert (memory == GUARD).all(), (m, n, k, transposed, accumulate, terms)


LAYOUTS = list(product((False, True), (False, True), (0, 1)))


@pytest.mark.ci
@both
def test_products_of_all_small_sizes_are_right_and_write_nothing_else(build: Build, is_double):
    library = build(TEXT, is_double)
    for count, (m, n, k) in enumerate(product(range(21), repeat=3)):
        left, right, accumulate = LAYOUTS[count % 8]
        check(library, is_double, m, n, k, (left, right), accumulate)


@pytest.mark.share(3)
@both
@pytest.mark.parametrize("sizes", [(1, 40, 33), (2, 65, 300), (23, 31, 257), (50, 50, 50),
                                   (64, 128, 128), (65, 63, 600), (7, 100, 256)])  # fmt: skip
def test_products_of_odd_sizes_are_right_in_every_layout(build: Build, is_double, sizes):
    library = build(TEXT, is_double)
    for left, right, accumulate in LAYOUTS:
        check(library, is_double, *sizes, (left, right), accumulate)


@pytest.mark.share(3)
@both
@pytest.mark.parametrize("terms", [TERMS_UP_TO_ROW, TERMS_FROM_ROW, COLUMNS_UP_TO_ROW])
def test_triangles_are_products_of_their_matrices(build: Build, is_double, terms):
    library = build(TEXT, is_double)
    for size in (*range(1, 21), 31, 33, 64, 70, 300):
        for left, right, accumulate in LAYOUTS:
            columns = size if terms == COLUMNS_UP_TO_ROW else 19
            inner = 13 if terms == COLUMNS_UP_TO_ROW else size
            check(library, is_double, size, columns, inner, (left, right), accumulate, terms)


@both
def test_inverses_read_below_the_diagonal_and_write_the_tile_alone(build: Build, is_double):
    library = build(TEXT, is_double)
    dtype = DTYPE[is_double]
    for n in (*range(21), 31, 32, 33, 48, 63, 64, 70):
        draw = np.random.default_rng(n)
        lower = np.tril(draw.normal(size=(n, n)) / max(n, 1) ** 0.5, -1).astype(dtype)
        a = np.where(np.tril(np.ones((n, n)), -1) > 0, lower, np.nan).astype(dtype)
        memory = np.full((n + 2, n + 5), GUARD, dtype)
        c = memory[1 : n + 1, 2 : n + 2]
        size = ctypes.c_int64
        row = memory.strides[0] // dtype().itemsize
        library.invert(size(n), address(a), size(n), address(c), size(row))
        unit = np.eye(n) + lower.astype(np.float64)
        inverse = np.linalg.inv(unit) if n else unit
        bound = 4 * (n + 1) * EPS[is_double] * (np.abs(inverse) @ np.abs(unit) @ np.abs(inverse))
        assert (np.abs(c - inverse) <= bound + EPS[is_double]).all(), n
        assert (np.triu(c, 1) == 0).all()
        c[:] = GUARD
        assert (memory == GUARD).all(), n
