"""Every operation of kernels once, beside what NumPy makes of the same arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from small_kernels import Array, Compute, N, S, T, X, Y

from dsfc.kernel_ir.build import KernelBuilder, Tile
from dsfc.kernel_ir.ir import Axis, Part, Triangle

I8, J8 = np.arange(8)[:, None], np.arange(8)[None, :]
ONE, R = Axis("one", 1), Axis("r", 8)


def pairs(k: KernelBuilder, x: Tile, y: Tile, **how: Any) -> Tile:
    """Σ_n x_tn y_sn."""
    return k.dot(x, k.rename(y, T, S), N, **how)


def part(which: Part, block: int | None = None) -> Triangle:
    return Triangle(T, S, which, block)


def upper(which: Part, block: int | None = None) -> Triangle:
    return Triangle(S, T, which, block)


def in_blocks(x: Array, size: int, function: Callable[[Array], Array]) -> Array:
    """A function of each block of rows."""
    return np.concatenate([function(x[i : i + size]) for i in range(0, len(x), size)])


def after_one(x: Array, neutral: float) -> Array:
    """The rows one later, the neutral entry first."""
    return np.concatenate([np.full_like(x[:1], neutral), x[:-1]])


# An operation and what NumPy makes of X and Y.
MIDDLE = np.kron(np.eye(2), [[0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 1, 0], [0, 0, 1, 1]])
"""Which rows lie between each of eight and the middle of its block of four."""

OPERATIONS: dict[str, tuple[Compute, Array]] = {
    "sum of two": (lambda k, x, y: x + y, X + Y),
    "difference": (lambda k, x, y: x - y, X - Y),
    "product of two": (lambda k, x, y: x * y, X * Y),
    "quotient": (lambda k, x, y: x / y, X / Y),
    "negative": (lambda k, x, y: -x, -X),
    "number": (lambda k, x, y: x * 3.0, X * 3),
    "larger": (lambda k, x, y: k.map("max", x, y), np.maximum(X, Y)),
    "smaller": (lambda k, x, y: k.map("min", x, y), np.minimum(X, Y)),
    "primitive": (lambda k, x, y: k.map("exp", x, free=True), np.exp(X)),
    "broadcast": (lambda k, x, y: x * k.sum(y, N), X * Y.sum(1, keepdims=True)),
    "choice by index": (
        lambda k, x, y: k.where(k.less(k.index(T, 2), 5), x, y),
        np.where(I8 + 2 < 5, X, Y),
    ),
    "choice by two masks": (
        lambda k, x, y: k.where(
            k.map("and", k.less(k.index(T), 5, or_equal=True), k.less(k.index(N), 1)), x, y
        ),
        np.where((I8 <= 5) & (np.arange(3) < 1), X, Y),
    ),
    "diagonal": (
        lambda k, x, y: k.where(k.equal(k.index(T), k.index(S)), pairs(k, x, y), 0.0),
        np.diag(np.diag(X @ Y.T)),
    ),
    "sum": (lambda k, x, y: k.sum(x, T), X.sum(0)),
    "sum of all": (lambda k, x, y: k.sum(x, T, N), X.sum()),
    "product": (lambda k, x, y: k.product(x, T), X.prod(0)),
    "maximum": (lambda k, x, y: k.max(x, N), X.max(1)),
    "sums so far": (lambda k, x, y: k.cumulate("sum", x, T), X.cumsum(0)),
    "sums along the last axis": (lambda k, x, y: k.cumulate("sum", x, N), X.cumsum(1)),
    "sums of what follows": (
        lambda k, x, y: k.cumulate("sum", x, T, reverse=True, exclusive=True),
        after_one(X[::-1].cumsum(0), 0)[::-1],
    ),
    "products of what is before": (
        lambda k, x, y: k.cumulate("product", x, T, exclusive=True),
        after_one(X.cumprod(0), 1),
    ),
    "products in blocks": (
        lambda k, x, y: k.cumulate("product", x, T, block=4),
        in_blocks(X, 4, lambda b: b.cumprod(0)),
    ),
    "sums in blocks from the end": (
        lambda k, x, y: k.cumulate("sum", x, T, block=2, reverse=True),
        in_blocks(X, 2, lambda b: b[::-1].cumsum(0)[::-1]),
    ),
    "sums to a middle": (lambda k, x, y: k.to_middle(x, T, 2), MIDDLE @ X),
    "sums from a middle": (lambda k, x, y: k.to_middle(x, T, 2, back=True), MIDDLE.T @ X),
    "sums to a middle without the place": (
        lambda k, x, y: k.to_middle(x, T, 4, exclusive=True),
        np.array([X[i + 1 : 4].sum(0) if i < 4 else X[4:i].sum(0) for i in range(8)]),
    ),
    "between": (
        lambda k, x, y: k.between(x, T, T, S),
        np.array([[X[j + 1 : i + 1].prod(0) * (j <= i) for j in range(8)] for i in range(8)]),
    ),
    "strictly between": (
        lambda k, x, y: k.between(x, T, T, S, True),
        np.array([[X[j + 1 : i].prod(0) * (j < i) for j in range(8)] for i in range(8)]),
    ),
    "rows shifted by their place": (
        lambda k, x, y: k.shift(pairs(k, x, y), S, T, 1),
        np.array([np.roll(row, i + 1) * (np.arange(8) > i) for i, row in enumerate(X @ Y.T)]),
    ),
    "rows shifted back": (
        lambda k, x, y: k.shift(pairs(k, x, y), S, T, back=True),
        np.array([np.roll(row, -i) * (np.arange(8) < 8 - i) for i, row in enumerate(X @ Y.T)]),
    ),
    "a matrix of one number a lag": (
        lambda k, x, y: k.shift(k.sum(x, N), T, S, 0),
        np.array([[X[t - s].sum() * (t >= s) for t in range(8)] for s in range(8)]),
    ),
    "product of matrices": (pairs, X @ Y.T),
    "product over rows": (lambda k, x, y: k.dot(x, y, T), (X * Y).sum(0)),
    "product with a vector": (lambda k, x, y: k.dot(x, k.sum(y, T), N), X @ Y.sum(0)),
    "lower triangle": (lambda k, x, y: pairs(k, x, y, out=part(Part.LOWER)), np.tril(X @ Y.T)),
    "strictly lower triangle": (
        lambda k, x, y: pairs(k, x, y, out=part(Part.STRICTLY_LOWER)),
        np.tril(X @ Y.T, -1),
    ),
    "upper triangle": (lambda k, x, y: pairs(k, x, y, out=upper(Part.LOWER)), np.triu(X @ Y.T)),
    "strictly upper triangle": (
        lambda k, x, y: pairs(k, x, y, out=upper(Part.STRICTLY_LOWER)),
        np.triu(X @ Y.T, 1),
    ),
    "level of blocks": (
        lambda k, x, y: pairs(k, x, y, out=part(Part.LOWER, 2)),
        X @ Y.T * ((I8 // 2 == J8 // 2 + 1) & (I8 // 4 == J8 // 4)),
    ),
    "upper level of blocks": (
        lambda k, x, y: pairs(k, x, y, out=upper(Part.LOWER, 2)),
        X @ Y.T * ((J8 // 2 == I8 // 2 + 1) & (I8 // 4 == J8 // 4)),
    ),
    "product of a triangle": (
        lambda k, x, y: k.dot(pairs(k, x, y), k.rename(y, T, S), S, left_part=part(Part.LOWER)),
        np.tril(X @ Y.T) @ Y,
    ),
    "product with a triangle": (
        lambda k, x, y: k.dot(x, pairs(k, x, y), T, right_part=upper(Part.LOWER)),
        X.T @ np.triu(X @ Y.T),
    ),
    "inverse": (
        lambda k, x, y: k.inverse_unit(
            pairs(k, x, y, out=part(Part.STRICTLY_LOWER), exact=True), T, S
        ),
        np.linalg.inv(np.eye(8) + np.tril(X @ Y.T, -1)),
    ),
}
