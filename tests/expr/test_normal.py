"""The normal form keeps values, is unique where it says so, and does not depend on hash seeds."""

from __future__ import annotations

import os
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsfc.expr.build import ONE, add, div, mul, neg, num, power, prim, sub, total
from dsfc.expr.evaluate import NamedArray, evaluate
from dsfc.expr.normal import canonical, factors, normalise, push_renames
from dsfc.expr.polynomial import content, plus, times, to_expr
from dsfc.expr.text import text
from dsfc.expr.tree import Axis, Expr, Field, LinearMap, Map, Ones, Param, Rename, Size

N, M, D = Axis(0, "n"), Axis(1, "m", copy_of="n"), Axis(2, "d")


def param(name: str, *axes: Axis, kind: Field = Field.REAL) -> Expr:
    return Param(name, frozenset(axes), kind)


A, B, C = (param(name) for name in "abc")
Z = param("z", kind=Field.COMPLEX)
LEAVES = st.sampled_from([A, B, C]) | st.fractions(-2, 2, max_denominator=3).map(num)


def extended(inner):
    pair = st.tuples(inner, inner)
    positive = inner.map(lambda e: add(ONE, mul(e, e)))
    return st.one_of(
        pair.map(lambda t: add(*t)),
        pair.map(lambda t: sub(*t)),
        pair.map(lambda t: mul(*t)),
        st.tuples(inner, positive).map(lambda t: div(*t)),
        st.tuples(positive, st.integers(-2, 2)).map(lambda t: power(t[0], num(t[1]))),
        positive.map(lambda e: prim("sqrt", e)),
        inner.map(lambda e: prim("sigmoid", e)),
        inner.map(lambda e: prim("tanh", e)),
        inner.map(lambda e: prim("exp", prim("tanh", e))),
        inner.map(lambda e: power(prim("sigmoid", e), num(Fraction(1, 16)))),
        pair.map(lambda t: prim("re", mul(prim("cis", t[0]), prim("conj", prim("cis", t[1]))))),
    )


EXPRESSIONS = st.recursive(LEAVES, extended, max_leaves=8)
FLOATS = st.floats(-2, 2)


class Values:
    """A scope of tensors and one matrix."""

    def __init__(self, values, sizes=None):
        self.values, self.sizes = values, sizes or {}

    def size(self, axis):
        return self.sizes[axis.name]

    def param(self, name):
        return self.values[name]

    def matrix(self, map):
        return self.values[map.name]


def value(expr: Expr, a: float, b: float, c: float) -> complex:
    scope = Values(
        {n: NamedArray((), np.asarray(x)) for n, x in zip("abc", (a, b, c), strict=True)}
    )
    return complex(evaluate(expr, scope).data)


def near(x: complex, y: complex) -> bool:
    return abs(x - y) <= 1e-7 * max(1.0, abs(x))


@given(EXPRESSIONS, FLOATS, FLOATS, FLOATS)
def test_values_are_kept(expr, a, b, c):
    assert near(value(expr, a, b, c), value(canonical(expr), a, b, c))


@given(EXPRESSIONS, FLOATS, FLOATS, FLOATS)
def test_products_are_kept(expr, a, b, c):
    assert near(value(expr, a, b, c), value(factors(expr).expr(), a, b, c))


@given(EXPRESSIONS)
def test_the_normal_form_is_its_own(expr):
    assert canonical(canonical(expr)) is canonical(expr)


@pytest.mark.parametrize("angle", [1.0, 4.0, -9.5])
@pytest.mark.parametrize("share", [Fraction(1, 2), Fraction(-3, 2), Fraction(2, 3)])
def test_a_share_of_a_turn_is_not_a_root(angle, share):
    """e^{i c a} is not the principal power (e^{i a})^c, which stays within half a turn."""
    turn = prim("cis", mul(num(share), A))
    expected = np.exp(1j * float(share) * angle)
    assert near(value(canonical(turn), angle, 0, 0), expected)
    assert near(value(factors(turn).expr(), angle, 0, 0), expected)
    assert near(value(canonical(div(ONE, turn)), angle, 0, 0), 1 / expected)
    assert near(value(factors(div(ONE, turn)).expr(), angle, 0, 0), 1 / expected)


def test_the_normal_form_of_a_share_of_a_turn_is_its_own():
    inner = prim("re", mul(prim("cis", A), prim("conj", prim("cis", num(Fraction(1, 2))))))
    assert canonical(canonical(inner)) is canonical(inner)


@given(EXPRESSIONS, EXPRESSIONS, EXPRESSIONS)
def test_ring_laws(x, y, z):
    p, q, r = (normalise(e) for e in (x, y, z))
    assert plus(p, q) == plus(q, p)
    assert times(p, q) == times(q, p)
    assert times(p, plus(q, r)) == plus(times(p, q), times(p, r))


@given(EXPRESSIONS)
def test_content_times_rest(expr):
    p = normalise(expr)
    coefficient, common, rest = content(p)
    whole = mul(num(coefficient), *(power(a, num(e)) for a, e in common), to_expr(rest))
    assert near(value(whole, 0.3, 0.7, -0.4), value(expr, 0.3, 0.7, -0.4))


SAME = [
    (mul(add(ONE, A), sub(ONE, A)), sub(ONE, mul(A, A))),
    (prim("exp", add(A, B)), mul(prim("exp", A), prim("exp", B))),
    (prim("exp", mul(num(2), A)), power(prim("exp", A), num(2))),
    (prim("sigmoid", neg(A)), sub(ONE, prim("sigmoid", A))),
    (power(prim("sqrt", add(A, B)), num(2)), add(A, B)),
    (mul(prim("cis", A), prim("conj", prim("cis", A))), ONE),
    (prim("exp", prim("cplx", A, B)), mul(prim("exp", A), prim("cis", B))),
    (prim("cplx", A, B), add(A, mul(prim("cplx", num(0), ONE), B))),
    (power(prim("cplx", num(0), ONE), num(2)), num(-1)),
    (prim("conj", mul(Z, A)), mul(prim("conj", Z), A)),
    (div(mul(A, add(A, B)), add(A, B)), A),
    (prim("exp", mul(num(3), prim("log", A))), power(A, num(3))),
    (total((N,), mul(A, param("x", N))), mul(A, total((N,), param("x", N)))),
    (total((N,), mul(A, Ones(frozenset({N})))), mul(A, Size(N))),
]


@pytest.mark.parametrize(("left", "right"), SAME, ids=lambda e: text(e))
def test_equal_functions_with_one_normal_form(left, right):
    if isinstance(left, type(div(A, B))):
        assert factors(left) == factors(right)
    else:
        assert normalise(left) == normalise(right)


def test_maps_are_linear():
    w = LinearMap("W", (), (N,), (D,))
    x, y = param("x", N), param("y", N)
    both = Map(w, add(mul(num(2), x), y))
    assert normalise(both) == normalise(add(mul(num(2), Map(w, x)), Map(w, y)))


def test_renames_go_to_the_leaves():
    x, y = param("x", N), param("y", N)
    moved = push_renames(Rename(N, M, prim("exp", add(x, mul(y, A)))))
    assert moved is prim("exp", add(Rename(N, M, x), mul(Rename(N, M, y), A)))


def test_large_products_are_not_multiplied_out():
    sums = [add(*(param(f"x{k}_{i}") for i in range(8))) for k in range(8)]
    assert len(normalise(mul(*sums)).terms) <= 512


SCRIPT = """
from dsfc.expr.build import add, mul, prim, num
from dsfc.expr.tree import Axis, Field, Param
from dsfc.expr.normal import canonical
from dsfc.expr.text import text
axes = frozenset(Axis(k, n) for k, n in enumerate("abcdef"))
p = [Param(n, axes, Field.REAL) for n in ("x", "y", "z", "w")]
print(text(canonical(mul(add(*p), add(p[1], prim("tanh", add(p[2], p[0])), num(3))))))
"""


def test_the_order_does_not_depend_on_hash_seeds():
    texts = set()
    for seed in ("0", "1", "2"):
        env = os.environ | {"PYTHONHASHSEED": seed}
        out = subprocess.run(
            [sys.executable, "-c", SCRIPT], env=env, capture_output=True, text=True
        )
        assert out.returncode == 0, out.stderr
        texts.add(out.stdout)
    assert len(texts) == 1
