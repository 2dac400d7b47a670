"""Text of expressions: the syntax of specs, with as few parentheses as it allows."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dsfc.expr.build import add, div, mul, neg, num, ones, power, prim, sub, total
from dsfc.expr.over_time import Lag, Past, Relation, Run
from dsfc.expr.text import text
from dsfc.expr.tree import (
    Axis,
    Bound,
    Field,
    Fir,
    Iota,
    LinearMap,
    Map,
    Now,
    Param,
    Ref,
    Series,
    Size,
    Time,
)

H, N, P, T = Axis(0, "h", heads=True), Axis(1, "n"), Axis(2, "p"), Axis(3, "t")


def ref(name, *axes, at=None):
    return Ref(name, frozenset(axes), Field.REAL, Time.TOKEN, at or Now())


q, k, v = ref("q", H, N), ref("k", H, N), ref("v", H, P)
s, a, u = ref("S", H, N, P), Param("a", frozenset({H})), ref("u", N)
J = Bound("j")

CASES = {
    "a * S[i-1] + k ⊗ v": add(mul(a, ref("S", H, N, P, at=Now(1))), mul(k, v)),
    "q · S": total((N,), mul(q, s)),
    "n^(-1/2) * q · S": mul(power(Size(N), num(Fraction(-1, 2))), total((N,), mul(q, s))),
    "S[i-1] - a * k ⊗ v": sub(ref("S", H, N, P, at=Now(1)), mul(a, k, v)),
    "exp(-a * softplus(W u))": prim(
        "exp", mul(neg(a), prim("softplus", Map(LinearMap("W", (), (N,), (H,)), u)))
    ),
    "W(u + 1)": Map(LinearMap("W", (), (N,), (H,)), add(u, num(1))),
    "W^T k": Map(LinearMap("W", (), (N,), (P,), adjoint=True), k),
    "W V u": Map(LinearMap("W", (), (P,), (H,)), Map(LinearMap("V", (), (N,), (P,)), u)),
    "1 - 2^(-5 - iota[h])": sub(num(1), power(num(2), sub(num(-5), Iota(H)))),
    "(a + 1) / (a * k)": div(add(a, num(1)), mul(a, k)),
    "a / k / k": div(div(a, k), k),
    "a / (k / k)": div(a, div(k, k)),
    "(k ⊗ v) / a": div(mul(k, v), a),
    "(W u)^2": power(Map(LinearMap("W", (), (N,), (H,)), u), num(2)),
    "k - (a - k)": add(k, neg(sub(a, k))),
    "fir[t](w, u)": Fir(T, Param("w", frozenset({N, T})), u),
    "softmax[n](k)": prim("softmax", k, axis=N),
    "Re(cplx(a, 0.02))": prim("re", prim("cplx", a, num(Fraction(1, 50)))),
    "taylor[2](q · k[j])": Series(2, total((N,), mul(q, ref("k", H, N, at=J)))),
    "u ⊗ ones[p]": mul(u, ones((P,))),
    "sum[j ≤ i](q · k[j] * v[j])": Past(
        "j", Relation.UP_TO, mul(total((N,), mul(q, ref("k", H, N, at=J))), ref("v", H, P, at=J))
    ),
    "prod[j < l ≤ i](g[l]) * c^(i-j-1)": mul(
        Run("l", J, Now(), ref("g", H, at=Bound("l"))),
        power(Param("c", frozenset()), Lag((("i", 1), ("j", -1)), -1)),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("expected", "expr"), CASES.items(), ids=CASES)
def test_text_is_that_of_a_spec(expected, expr):
    assert text(expr) == expected


def test_ascii_spells_the_signs():
    e = Past("j", Relation.UP_TO, mul(k, total((N,), mul(q, k)), v))
    assert text(e, ascii_only=True) == "sum[j <= i](k * q . k (*) v)"
    assert text(e, ascii_only=True).isascii()


def test_numbers():
    for value, expected in {
        Fraction(3): "3", Fraction(-1, 2): "-1/2", Fraction(1, 3): "1/3",
        Fraction(1, 10**12): "1e-12", Fraction(69, 10): "69/10",
    }.items():  # fmt: skip
        assert text(num(value)) == expected
