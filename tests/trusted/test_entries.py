"""Expressions entry by entry, in a domain of fractions in which every function is told apart."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import pytest

from dsfc.expr.over_time import Lag
from dsfc.expr.tree import (
    Add,
    Axis,
    Div,
    Expr,
    Field,
    Fir,
    Iota,
    LinearMap,
    Map,
    Mul,
    Now,
    Num,
    Ones,
    Param,
    Pow,
    Prim,
    Reduce,
    Reduction,
    Ref,
    Rename,
    Series,
    Size,
    Time,
)
from dsfc.trusted.entries import Entries, Index, Obstacle

N, P, T = Axis(0, "n"), Axis(1, "p"), Axis(2, "t")
SIZES = {"n": 2, "p": 3, "t": 3}
SIZE = Fraction(1, 7)
"""What a size is as an entry: a symbol, which is not the number of entries."""


class Plain(Entries[Fraction]):
    """Arrays of primes, and what is read at a lag a hundred times it."""

    def __init__(self) -> None:
        super().__init__(SIZES)
        self.asked = 0
        self.token = 0

    def number(self, value: Fraction) -> Fraction:
        return value

    def size(self, axis: Axis) -> Fraction:
        return SIZE

    def parameter(self, name: str, axes: tuple[Axis, ...], at: tuple[int, ...]) -> Fraction:
        self.asked += 1
        return Fraction(ARRAYS[name][axes][at])

    def ref(self, ref: Ref, at: Index) -> Fraction:
        assert isinstance(ref.at, Now)
        return Fraction(1000 * self.token + 100 * ref.at.lag + sum(at[a] + 1 for a in ref.over))

    def primitive(self, e: Prim, args: tuple[Fraction, ...]) -> Fraction:
        return sum((Fraction(10) ** k * a for k, a in enumerate(args)), Fraction(0))

    def along(self, e: Prim, vector: tuple[Fraction, ...], at: int) -> Fraction:
        return sum((Fraction(10) ** k * a for k, a in enumerate(vector)), Fraction(1000 * at))

    def power(self, base: Fraction, exponent: Fraction) -> Fraction:
        return Fraction(base**exponent)

    def conjugate(self, value: Fraction) -> Fraction:
        return -value

    def largest(self, values: list[Fraction]) -> Fraction:
        return max(values)

    def memo_key(self) -> object:
        return self.token


ARRAYS: Mapping[str, Mapping[tuple[Axis, ...], Mapping[tuple[int, ...], int]]] = {
    "w": {(N,): {(0,): 2, (1,): 3}},
    "k": {(T,): {(0,): 2, (1,): 3, (2,): 5}},
    "v": {(P,): {(0,): 11, (1,): 13, (2,): 17}},
    "m": {(N, P): {(j, k): 7 + 10 * j + k for j in range(2) for k in range(3)}},
    "B": {(T, N, P): {(i, j, k): 100 * i + 10 * j + k
                      for i in range(3) for j in range(2) for k in range(3)}},
}  # fmt: skip


def param(name: str, *axes: Axis) -> Param:
    return Param(name, frozenset(axes))


def ref(lag: int, *axes: Axis) -> Ref:
    return Ref("u", frozenset(axes), Field.REAL, Time.TOKEN, Now(lag))


W, V, M = param("w", N), param("v", P), param("m", N, P)
TWO, HALF = Num(Fraction(2)), Num(Fraction(1, 2))
AT = {N: 1, P: 2, T: 1}
BLOCKS = LinearMap("B", (T,), (P,), (N,))
ADJOINT = LinearMap("B", (T,), (N,), (P,), adjoint=True)

VALUES: dict[str, tuple[Expr, int | Fraction]] = {
    "a number": (HALF, Fraction(1, 2)),
    "ones": (Ones(frozenset({N})), 1),
    "a size": (Size(N), SIZE),
    "a position": (Iota(P), 2),
    "a parameter": (M, 19),
    "a name": (ref(3, N, P), 305),
    "a sum": (Add((W, M, TWO)), 3 + 19 + 2),
    "a product": (Mul((W, M, TWO)), 3 * 19 * 2),
    "no sum": (Add(()), 0),
    "no product": (Mul(()), 1),
    "a quotient": (Div(W, M), Fraction(3, 19)),
    "a power": (Pow(W, Num(Fraction(4))), 81),
    "a sum over an axis": (Reduce(Reduction.SUM, N, W), 5),
    "a mean": (Reduce(Reduction.MEAN, N, W), 5 / SIZE),
    "a maximum": (Reduce(Reduction.MAX, N, W), 3),
    "a sum of what has another axis": (Reduce(Reduction.SUM, P, W), 3 * SIZE),
    "a mean of what has another axis": (Reduce(Reduction.MEAN, P, W), 3),
    "a maximum of what has another axis": (Reduce(Reduction.MAX, P, W), 3),
    # Row 1 of block 1, and the conjugates of its column 2.
    "a map": (Map(BLOCKS, V), 110 * 11 + 111 * 13 + 112 * 17),
    "an adjoint": (Map(ADJOINT, W), -(102 * 2 + 112 * 3)),
    "a filter": (Fir(T, param("k", T), ref(1, N)), 2 * 102 + 3 * 202 + 5 * 302),
    "a filter of later tokens": (Fir(T, param("k", T), ref(1, N), True), 2 * 102 + 3 * 2 - 5 * 98),
    "another axis": (Rename(N, T, W), 3),
    "another axis in the place of its own": (Rename(P, T, M), 18),
    "another axis of what has not the one": (Rename(P, T, W), 3),
    "a function": (Prim("max", (W, TWO), Field.REAL), 3 + 10 * 2),
    "a function along an axis": (Prim("softmax", (M,), Field.REAL, P), 2000 + 17 + 180 + 1900),
    "a series of no term": (Series(0, W), 1),
    "a series": (Series(3, W), 1 + 3 + Fraction(9, 2) + Fraction(27, 6)),
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_an_entry_of_every_form(name: str) -> None:
    e, value = VALUES[name]
    assert Plain().value(e, AT) == value


def test_an_entry_is_computed_once_for_each_index_and_moment() -> None:
    it = Plain()
    values = [it.value(W, {N: k, P: p}) for k in (0, 1) for p in range(3)]
    assert values == [2] * 3 + [3] * 3 and it.asked == 2
    assert it.value(ref(0, N), AT) == 2
    it.token = 1
    assert it.value(ref(0, N), AT) == 1002


def test_what_has_no_meaning_is_named() -> None:
    with pytest.raises(Obstacle, match="`Lag` stands in a definition"):
        Plain().value(Lag((), 1), {})
    for e in (W, Ref("u", frozenset({N}), Field.REAL, Time.CONST, None)):
        with pytest.raises(Obstacle, match="applied to something other than a name"):
            Plain().value(Fir(T, param("k", T), e), AT)


def test_the_last_axis_runs_fastest() -> None:
    assert list(Plain().places((P, N))) == [{P: p, N: n} for p in range(3) for n in range(2)]
    assert list(Plain().places(())) == [{}]
