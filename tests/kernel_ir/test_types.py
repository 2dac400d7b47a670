"""Operations whose operands do not fit are refused where they are built."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from small_kernels import N, S, T

from dsfc.kernel_ir.build import KernelBuilder, Tile
from dsfc.kernel_ir.ir import Axis, Kind, Part, Triangle
from dsfc.kernel_ir.types import united

SHORT = Axis("short", 4)


def builder() -> tuple[KernelBuilder, Tile]:
    """A builder and a tile over (t, n)."""
    k = KernelBuilder("one", "One operation.")
    x = k.load(k.argument("x", (8, k.static("N"))), k.all(T), k.all(N))
    return k, x


def mask(k: KernelBuilder) -> Tile:
    return k.less(k.index(T), 3)


REFUSED: dict[str, tuple[Callable[[KernelBuilder, Tile], Tile], str]] = {
    "a sum of indices": (lambda k, x: x + k.index(T), "add takes real entries"),
    "a product of masks": (lambda k, x: mask(k) * x, "mul takes real entries"),
    "a choice by numbers": (lambda k, x: k.where(x, x, x), "where takes mask entries"),
    "a choice of masks": (lambda k, x: k.where(mask(k), mask(k), x), "where takes real"),
    "numbers that are both": (lambda k, x: k.map("and", mask(k), x), "and takes mask"),
    "numbers compared": (lambda k, x: k.less(x, 3), "compare takes index entries"),
    "an index compared with a number": (lambda k, x: k.less(k.index(T), x), "compare takes index"),
    "a function that gives complex numbers": (lambda k, x: k.map("cis", x), "no function of real"),
    "an unknown function": (lambda k, x: k.map("no_such", x), "no function 'no_such'"),
    "a function along an axis": (lambda k, x: k.map("softmax", x), "no function"),
    "a function of too many": (lambda k, x: k.map("neg", x, x), "neg of 2 operands"),
    "a primitive of too many": (lambda k, x: k.map("exp", x, x), "exp of 2 operands"),
    "a sum along another axis": (lambda k, x: k.product(x, S), "product along s"),
    "a sum of indices along an axis": (lambda k, x: k.max(k.index(T), T), "max takes real"),
    "sums along another axis": (lambda k, x: k.cumulate("sum", x, S), "sum along s"),
    "unknown sums": (lambda k, x: k.cumulate("max", x, T), "no function 'max'"),
    "blocks that do not divide": (
        lambda k, x: k.cumulate("sum", x, T, block=3),
        "blocks of 3 along t of 8",
    ),
    "halves that do not divide": (lambda k, x: k.to_middle(x, T, 8), "blocks of 16 along t of 8"),
    "sums to the middle of another axis": (lambda k, x: k.to_middle(x, S, 2), "along s"),
    "blocks of no entries": (lambda k, x: k.cumulate("sum", x, T, block=0), "blocks of 0 along t"),
    "a triangle in blocks of no entries": (
        lambda k, x: k.dot(x, k.rename(x, T, S), N, out=Triangle(T, S, Part.LOWER, 0)),
        "in blocks of 0, no power of two",
    ),
    "blocks of an unknown size": (
        lambda k, x: k.cumulate("sum", x, N, block=2),
        "blocks of 2 along n of N",
    ),
    "a rename of no axis": (lambda k, x: k.rename(x, S, T), "rename along s"),
    "a rename to another size": (lambda k, x: k.rename(x, T, SHORT), "axes of one size"),
    "a rename to an axis there is": (
        lambda k, x: k.rename(k.dot(x, k.rename(x, T, S), N), T, S),
        r"over \(s, s\)",
    ),
    "between of another size": (lambda k, x: k.between(x, T, T, SHORT), "axes of one size"),
    "between one axis": (lambda k, x: k.between(x, T, S, S), r"over \(s, s, n\)"),
    "a dot over an axis of one": (lambda k, x: k.dot(x, k.const(1.0), N), "dot along n"),
    "a triangle of another tile": (
        lambda k, x: k.dot(x, x, N, out=Triangle(T, S, Part.LOWER)),
        r"a triangle over \(t, s\) of a tile over \(t\)",
    ),
    "a triangle that is no square": (
        lambda k, x: k.dot(
            x,
            k.load(k.argument("z", (4, k.static("N"))), k.all(SHORT), k.all(N)),
            N,
            out=Triangle(T, SHORT, Part.LOWER),
        ),
        "triangle of axes of one size",
    ),
    "a triangle over one axis": (
        lambda k, x: k.dot(x, k.rename(x, T, S), N, out=Triangle(T, T, Part.LOWER)),
        r"a triangle over \(t, t\) of a tile over \(t, s\)",
    ),
    "a triangle in blocks of three": (
        lambda k, x: k.dot(x, k.rename(x, T, S), N, out=Triangle(T, S, Part.LOWER, 3)),
        "no power of two",
    ),
    "an inverse of more than a matrix": (
        lambda k, x: k.inverse_unit(k.between(x, T, T, S), T, S),
        r"of a tile over \(t, s, n\)",
    ),
    "an inverse of no matrix": (lambda k, x: k.inverse_unit(x, T, S), "along s"),
    "an inverse of no square": (
        lambda k, x: k.inverse_unit(k.where(k.less(k.index(SHORT), 2), k.sum(x, N), 0.0), T, SHORT),
        "inverseunit of axes of one size",
    ),
    "an inverse over one axis": (lambda k, x: k.inverse_unit(x, T, T), "over row and column"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_the_builder_refuses(what: str) -> None:
    build, message = REFUSED[what]
    k, x = builder()
    with pytest.raises(TypeError, match=message):
        build(k, x)


def test_operands_broadcast_by_the_names_of_their_axes() -> None:
    k, x = builder()
    row, columns = k.sum(x, N), k.sum(k.rename(x, T, S), N)
    assert set((row * columns).axes) == {T, S}
    assert set((row * x).axes) == {T, N}


def test_comparisons_are_masks_and_choices_numbers() -> None:
    k, x = builder()
    assert k.index(T).type.kind is Kind.INDEX
    assert k.map("and", mask(k), mask(k)).type.kind is Kind.MASK
    assert k.where(mask(k), x, 0.0).type.kind is Kind.REAL


def test_a_comparison_has_the_axes_of_both_sides() -> None:
    k, _ = builder()
    assert set(k.less(k.index(T), k.index(S)).axes) == {T, S}


def test_the_longest_operand_orders_the_axes() -> None:
    assert united((T,), (N, T)) == (N, T)
    assert united((T, N), (S,)) == (T, N, S)
