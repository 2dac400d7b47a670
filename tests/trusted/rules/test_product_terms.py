"""Expressions as sums of products: what they mean is kept, and what has equal terms is equal."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction

import pytest

from dsfc.expr.build import ONE, ZERO, add, mul, num, ones, power, sub
from dsfc.expr.tree import Axis, Div, Expr, Field, Now, Reduce, Reduction, Ref, Size, Time
from dsfc.trusted.definition import Execution
from dsfc.trusted.entries import Obstacle
from dsfc.trusted.rules.product_terms import (
    NOTHING,
    axes_of,
    expression,
    single,
    terms_of,
    times,
    with_all,
    without,
)

N, M = Axis(0, "n"), Axis(1, "m")


def ref(name: str, *axes: Axis) -> Ref:
    return Ref(name, frozenset(axes), Field.REAL, Time.TOKEN, Now(0))


A, B, C = ref("a"), ref("b", N), ref("c", N, M)


def summed(axis: Axis, e: Expr) -> Expr:
    return Reduce(Reduction.SUM, axis, e)


class Values(Execution):
    """Numbers by name and index, without a mixer."""

    def __init__(self) -> None:
        self.sizes = {"n": 2, "m": 3}
        self._known, self._axes, self._token, self._bound = {}, {}, 0, {}

    def ref(self, ref: Ref, at: dict) -> Fraction:
        rng = random.Random(f"{ref.name} {sorted((a.name, at[a]) for a in ref.over)}")
        return self.number(Fraction(rng.randint(1, 9), 7))


def value(e: Expr) -> list:
    run = Values()
    return [run.value(e, at) for at in run.places((N, M))]


EQUAL = [
    (mul(A, add(B, ones({N}))), add(mul(A, B), A)),
    (summed(N, mul(A, B)), mul(A, summed(N, B))),
    (summed(N, add(B, mul(num(2), B))), mul(num(3), summed(N, B))),
    (summed(N, A), mul(Size(N), A)),
    (summed(N, summed(M, mul(C, C))), summed(M, summed(N, mul(C, C)))),
    (summed(N, mul(B, summed(M, C))), summed(N, summed(M, mul(B, C)))),
    (power(add(A, ONE), num(2)), add(mul(A, A), mul(num(2), A), ONE)),
    (Div(add(A, B), A), add(Div(A, A), Div(B, A))),
    (sub(mul(A, B), mul(B, A)), ZERO),
    (mul(summed(N, B), B), mul(B, summed(N, B))),
]


@pytest.mark.parametrize(("one", "other"), EQUAL)
def test_what_has_equal_terms_is_equal(one: Expr, other: Expr) -> None:
    assert terms_of(sub(one, other)) == {}
    assert value(one) == value(other)
    for e in (one, other):
        assert value(expression(terms_of(e), [e])) == value(e)


DIFFERENT = [
    (mul(summed(N, B), summed(N, B)), summed(N, mul(B, B))),
    (summed(N, mul(B, C)), mul(summed(N, B), summed(N, C))),
    (mul(B, summed(N, B)), mul(Size(N), B)),
    (Div(A, A), ONE),
    (summed(N, A), A),
]


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_what_is_not_equal_has_other_terms(one: Expr, other: Expr) -> None:
    assert terms_of(one) != terms_of(other)


def test_products_lose_factors_that_they_have() -> None:
    (product,) = terms_of(mul(A, A, B))
    assert without(product, single(A)) == with_all(single(A), single(B))
    assert without(product, with_all(single(B), single(B))) is None
    assert without(product, product) == NOTHING
    assert axes_of(product) == {N}
    assert axes_of(next(iter(terms_of(summed(N, C))))) == {M}


def test_many_terms_are_too_many() -> None:
    several = terms_of(add(*(ref(f"x{k}") for k in range(20))))
    with pytest.raises(Obstacle, match="256"):
        times(several, several)


def test_factors_keep_the_order_of_the_text() -> None:
    text: Callable[[Expr], Expr] = lambda e: expression(terms_of(e), [e])  # noqa: E731
    for e in (mul(C, A, B), mul(B, C, A), add(mul(A, B), summed(M, mul(C, B)))):
        assert text(e) == text(text(e))
    assert text(mul(C, A, B)).args == (C, A, B)
    assert text(mul(B, C, A)).args == (B, C, A)
