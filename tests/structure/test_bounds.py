"""Ranges contain every value; the vertex rule and strictness are proved, not guessed."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dsfc.api.locate import Place
from dsfc.api.pipeline import SpecText
from dsfc.derive.decay import decay_of
from dsfc.expr.build import ONE, add, div, mul, neg, num, power, prim, sub
from dsfc.expr.evaluate import NamedArray, evaluate
from dsfc.expr.interval import NONNEG, POSITIVE, REALS, UNIT, Interval
from dsfc.expr.tree import Axis, Expr, Field, Param, Reduce, Reduction, Series
from dsfc.source import Source
from dsfc.structure.bounds import Ranges, diagonal_bound, interval_text, nonzero_of
from dsfc.structure.ir import BoundKind
from dsfc.syntax.parse import parse

KNOWN = {"p": POSITIVE, "q": NONNEG, "r": UNIT, "s": UNIT}


def param(name: str) -> Expr:
    return Param(name, frozenset(), Field.REAL)


P, Q, R, S, X = (param(name) for name in "pqrsx")
X_SQUARED = power(X, num(2))
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


def test_powers_with_any_exponent():
    steps = sub(num(-5), Q)  # q ≥ 0
    found = Ranges(KNOWN).of(sub(ONE, power(num(2), steps)))
    assert found.low == 1 - 2**-5 or 0.96 < found.low < 1 - 2**-5
    assert found.high == 1 and found.open_high
    assert REALS.within(Ranges(KNOWN).of(power(Q, X)))  # 0^x


def test_even_orders_of_the_exponential_series_are_positive():
    for order in range(9):
        found = Ranges(KNOWN).of(Series(order, X))
        assert found.within(POSITIVE) == (order % 2 == 0)
        assert Ranges(KNOWN).of(Series(order, Q)).low == 1
        values = [sum(x**r / math.factorial(r) for r in range(order + 1)) for x in range(-40, 40)]
        assert (min(values) > 0) == (order % 2 == 0)


N = Axis(0, "n")


def test_unit_vectors_have_length_one_at_most():
    x = Param("x", frozenset({N}), Field.REAL)
    unit = prim("l2norm", x, axis=N)
    other = prim("l2norm", Param("z", frozenset({N}), Field.REAL), axis=N)

    def summed(e: Expr) -> Interval:
        return Ranges(KNOWN).of(Reduce(Reduction.SUM, N, e))

    assert summed(mul(unit, unit)) == Interval(0, 1)
    assert summed(mul(R, unit, unit)).high == 1
    assert summed(mul(num(-2), unit, unit)) == Interval(-2, 0)
    assert REALS.within(summed(mul(unit, other)))
    assert REALS.within(summed(mul(x, unit, unit)))
    assert summed(mul(x, x)).high == math.inf
    assert summed(mul(unit, unit, unit)).high == math.inf


def test_what_is_declared_other_than_zero():
    nonzero = Ranges({}, frozenset({"x"}))
    assert nonzero.modulus(X).within(POSITIVE)
    assert nonzero.modulus(mul(num(-3), X)).open_low
    assert nonzero.modulus(add(X, ONE)).low == 0 and not nonzero.modulus(add(X, ONE)).open_low
    assert REALS.within(nonzero.of(X))


def test_facts_narrow_what_is_found():
    known = Ranges({}, facts={X: Interval(0, 3), mul(X, P): Interval(1, 2)})
    assert known.of(X) == Interval(0, 3)
    assert known.of(add(X, ONE)) == Interval(1, 4)
    assert known.of(mul(X, P)) == Interval(1, 2)


ENDS = st.tuples(st.integers(-3, 3), st.integers(0, 3), st.booleans(), st.booleans())
AFFINE = st.dictionaries(
    st.sets(st.sampled_from("pqr")).map(lambda s: tuple(sorted(s))),
    st.integers(-3, 3).filter(bool),
    min_size=1,
    max_size=5,
)


@given(AFFINE, ENDS, ENDS, ENDS)
def test_an_open_end_is_not_taken_and_a_value_is_inside(terms, p, q, r):
    """Against every point of a grid that meets ends, edges and the inside of the box."""
    boxes = {}
    for name, (low, width, open_low, open_high) in zip("pqr", (p, q, r), strict=True):
        open_low, open_high = open_low and width > 0, open_high and width > 0
        boxes[name] = Interval(low, low + width, open_low, open_high)
    expr = add(*(mul(num(c), *(param(n) for n in m)) for m, c in terms.items()))
    found = Ranges(boxes).of(expr)
    grid = [
        [x for x in (b.low, b.low + (b.high - b.low) / 4, (b.low + b.high) / 2, b.high) if x in b]
        for b in boxes.values()
    ]
    for point in product(*grid):
        at = dict(zip("pqr", point, strict=True))
        value = sum(c * math.prod(at[n] for n in m) for m, c in terms.items())
        assert value in found, (value, interval_text(found))


def test_a_closed_floor_of_zero_leaves_a_gate_positive():
    known = {"r": Interval(0, 1, False, True)}
    gate = add(R, mul(sub(ONE, R), prim("sigmoid", X)))
    assert Ranges(known).of(gate) == Interval(0, 1, True, True)


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


def test_a_share_of_a_positive_whole_is_below_1() -> None:
    """x / (r + c Σ x) for x ≥ 0, r > 0 and c ≥ 1, and nothing that only looks like it."""
    axis, other = Axis(0, "n"), Axis(1, "m")
    x, k = (Param(name, frozenset({axis}), Field.REAL) for name in "zk")
    turned = Param("z", frozenset({other}), Field.REAL)
    square = power(k, num(2))

    def total(e: Expr) -> Expr:
        return Reduce(Reduction.SUM, axis, e)

    def of(part: Expr, whole: Expr) -> Interval:
        return Ranges({**KNOWN, "z": NONNEG}).of(sub(ONE, div(part, whole)))

    kept = Interval(0, 1, open_low=True)
    assert of(square, add(ONE, total(square))) == kept
    assert of(mul(R, square), add(P, mul(R, total(square)))) == kept
    assert of(mul(R, x), add(ONE, total(mul(R, x)), X_SQUARED)) == kept
    assert of(x, add(ONE, mul(num(2), total(x)))) == kept
    for part, whole in (
        (k, add(ONE, total(k))),  # of either sign
        (x, add(Q, total(x))),  # nothing else, perhaps
        (x, add(X, ONE, total(x))),  # something else may take away
        (mul(num(2), x), add(ONE, total(x))),
        (x, add(ONE, mul(num(Fraction(1, 2)), total(x)))),
        (mul(P, x), add(ONE, total(x))),
        (turned, add(ONE, total(x))),
        (mul(k, k, x), add(ONE, mul(power(k, num(2)), total(x)))),  # k is not inside
    ):
        assert of(part, whole).low < 0


def test_a_buffer_may_be_the_0_that_its_declaration_denies() -> None:
    for value, names in (("-d", {"w"}), ("d - 20", set())):
        spec = f"mixer m {{ dims d\n input u : d\n buffer w nonzero = {value}\n y = w * u\n}}"
        made = SpecText(Place(Path("m.dsf")), parse(Source("m.dsf", spec))).compilation("m")
        assert nonzero_of(made.system) == names
