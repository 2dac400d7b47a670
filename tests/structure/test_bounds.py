"""Ranges contain every value; the vertex rule and strictness are proved, not guessed."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dsfc.derive.decay import decay_of
from dsfc.primitives.build import ONE, add, div, mul, neg, num, power, prim, sub
from dsfc.primitives.evaluate import NamedArray, evaluate
from dsfc.primitives.expr import Expr, Field, Param
from dsfc.primitives.interval import NONNEG, POSITIVE, REALS, UNIT, Interval
from dsfc.structure.bounds import Ranges, diagonal_bound, interval_text
from dsfc.structure.ir import BoundKind

KNOWN = {"p": POSITIVE, "q": NONNEG, "r": UNIT, "s": UNIT}


def param(name: str) -> Expr:
    return Param(name, frozenset(), Field.REAL)


P, Q, R, S, X = (param(name) for name in "pqrsx")
LEAVES = st.sampled_from([P, Q, R, S, X]) | st.fractions(-3, 3, max_denominator=4).map(num)


def extended(inner):
    pair = st.tuples(inner, inner)
    return st.one_of(
        pair.map(lambda t: add(*t)),
        pair.map(lambda t: sub(*t)),
        pair.map(lambda t: mul(*t)),
        st.tuples(inner, st.integers(2, 3)).map(lambda t: power(t[0], num(t[1]))),
        st.tuples(
            st.sampled_from(["sigmoid", "softplus", "tanh", "relu", "abs", "silu", "elu"]), inner
        ).map(lambda t: prim(t[0], t[1])),
        inner.map(lambda e: prim("exp", neg(prim("abs", e)))),
        inner.map(lambda e: div(ONE, add(ONE, prim("exp", e)))),
        inner.map(lambda e: prim("sqrt", prim("abs", e))),
        inner.map(lambda e: prim("log1p", prim("relu", e))),
    )


EXPRESSIONS = st.recursive(LEAVES, extended, max_leaves=8)


class Values:
    """A scope of parameters only."""

    def __init__(self, values):
        self.values = values

    def size(self, axis):
        raise KeyError(axis)

    def param(self, name):
        return NamedArray((), np.asarray(self.values[name]))


POSITIVE_FLOATS = st.floats(1e-3, 5)
UNIT_FLOATS = st.floats(0.01, 0.99)


@given(EXPRESSIONS, POSITIVE_FLOATS, st.floats(0, 5), UNIT_FLOATS, UNIT_FLOATS, st.floats(-5, 5))
def test_ranges_contain_the_values(expr, p, q, r, s, x):
    found = Ranges(KNOWN).of(expr)
    values = {"p": p, "q": q, "r": r, "s": s, "x": x}
    with np.errstate(all="ignore"):
        value = float(evaluate(expr, Values(values)).data)
    if math.isfinite(value):
        slack = 1e-9 * max(1.0, abs(value))
        assert found.low - slack <= value <= found.high + slack, interval_text(found)


def test_vertex_rule():
    # intervals alone give [0, 2]
    mixed = add(R, mul(sub(ONE, R), prim("sigmoid", X)))
    assert Ranges(KNOWN).of(mixed) == Interval(0, 1, True, True)


def test_vertex_rule_keeps_closed_ends():
    known = {"r": Interval(0, 1), "s": Interval(0, 1)}
    assert Ranges(known).of(sub(ONE, mul(R, S))) == Interval(0, 1)


def test_squares_are_not_products_of_independent_factors():
    assert Ranges({}).of(neg(mul(X, X))).high == 0
    assert Ranges({}).of(neg(power(X, num(2)))).high == 0


def kind(value: Expr, known=KNOWN) -> BoundKind:
    return diagonal_bound(decay_of(value), None, Ranges(known)).kind


def test_bounds():
    step = prim("softplus", X)
    assert kind(prim("exp", neg(mul(step, prim("exp", X))))) is BoundKind.LESS_THAN_ONE
    assert kind(prim("exp", neg(mul(step, prim("relu", X))))) is BoundKind.AT_MOST_ONE
    assert kind(prim("exp", neg(mul(X, X)))) is BoundKind.AT_MOST_ONE
    assert kind(prim("tanh", X)) is BoundKind.LESS_THAN_ONE
    assert kind(prim("sigmoid", X)) is BoundKind.LESS_THAN_ONE
    assert kind(ONE) is BoundKind.EQUAL_ONE
    assert kind(prim("cis", X)) is BoundKind.EQUAL_ONE
    assert kind(mul(R, prim("cis", X))) is BoundKind.LESS_THAN_ONE
    assert kind(num(Fraction(-1, 2))) is BoundKind.LESS_THAN_ONE
    assert kind(num(-1)) is BoundKind.EQUAL_ONE


def test_nothing_is_claimed_without_proof():
    assert kind(X) is BoundKind.UNKNOWN
    assert kind(prim("exp", X)) is BoundKind.UNKNOWN
    assert kind(prim("exp", neg(mul(X, P)))) is BoundKind.UNKNOWN
    assert kind(num(Fraction(3, 2))) is BoundKind.UNKNOWN
    assert kind(add(R, S)) is BoundKind.UNKNOWN
    # true (a quotient below one), but not by ranges of its parts
    assert kind(div(R, add(R, S))) is BoundKind.UNKNOWN
    assert REALS.within(Ranges({}).of(X))


def test_large_powers_end():
    assert kind(prim("exp", mul(num(-(10**15)), prim("softplus", X)))) is BoundKind.LESS_THAN_ONE
