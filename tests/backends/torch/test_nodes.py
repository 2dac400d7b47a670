"""What is printed for an expression computes the expression, whatever it is made of."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from drawn_expressions import (
    BATCH,
    LENGTH,
    MAPS,
    SIZES,
    H,
    Maker,
    N,
    P,
    arrays,
    printed,
    run,
    wanted,
)
from dsfc.backends.torch.code import Code
from hypothesis import given
from hypothesis import strategies as st

from dsfc.expr.build import add, mul, num, ones, power, prim, total
from dsfc.expr.tree import (
    Add,
    Div,
    Expr,
    Field,
    Iota,
    Map,
    Mul,
    Now,
    Num,
    Ones,
    Param,
    Pow,
    Prim,
    Reduce,
    Ref,
    Rename,
    Series,
    Size,
    Time,
)


@given(st.integers(0, 2**32), st.booleans())
def test_printed_code_computes_the_expression(seed: int, lead: bool) -> None:
    expr = Maker(seed).expression(Random(seed).choice((1, 2, 3, 4, 5, 6)))
    data = arrays(seed, lead)
    axes = tuple(sorted(expr.axes))
    with np.errstate(all="ignore"):
        want = wanted(expr, data, lead, axes)
    if not np.isfinite(want).all() or np.abs(want).max() > 1e8:
        return
    code = printed(expr, lead)
    got = run(code, data)
    lead_shape = (BATCH, LENGTH) if lead else ()
    if not code.number:
        # An axis along which a value is constant may be left out, as may the time axis.
        got = run(Code(code.aligned(axes, lead), axes, lead), data)
    whole = np.broadcast_to(got.numpy(), (*lead_shape, *(SIZES[a] for a in axes)))
    np.testing.assert_allclose(whole, want, rtol=0, atol=1e-12 * max(1.0, np.abs(want).max()))


def test_every_node_is_drawn() -> None:
    seen: set[type] = set()

    def note(e: object) -> None:
        if isinstance(e, Expr):
            seen.add(type(e))
            for name in e.__slots__ if hasattr(e, "__slots__") else ():
                note(getattr(e, name, None))
        elif isinstance(e, tuple):
            for x in e:
                note(x)

    for seed in range(150):
        note(Maker(seed).expression(4))
    assert {Add, Mul, Div, Pow, Reduce, Map, Rename, Prim, Series, Num, Size, Ones, Iota} <= seen


X = Ref("x", frozenset({N}), Field.REAL, Time.TOKEN, Now(0))
Q = Ref("q", frozenset({H, N}), Field.REAL, Time.TOKEN, Now(0))
V = Ref("v", frozenset({H, P}), Field.REAL, Time.TOKEN, Now(0))
A = Param("a", frozenset({H}))


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (add(X, num(1)), "x + 1"),
        (add(X, mul(num(-2), X, X)), "x - 2 * x * x"),
        (mul(A, Q), "a[:, None] * q"),
        (mul(Q, V), "q[..., None] * v[..., None, :]"),
        (total((N,), mul(Q, X)), 'torch.einsum("...hn,...n->...h", q, x)'),
        (total((N,), X), "x.sum(dim=-1)"),
        (power(X, num(-1)), "x**-1"),
        (power(add(X, num(1)), num(2)), "(x + 1) ** 2"),
        (prim("max", X, num(1)), "torch.clamp(x, min=1)"),
        (prim("max", X, prim("pi")), "torch.clamp(x, min=math.pi)"),
        (mul(prim("sqrt", prim("pi")), X), "math.sqrt(math.pi) * x"),
        (Map(MAPS[0], X), "F.linear(x, W)"),
        (prim("softmax", Q, axis=H), "torch.softmax(q, dim=-2)"),
        (mul(X, ones({N, P})), "x[..., None] * S.new_ones(4)"),
        (mul(num(-1), prim("softplus", X)), "F.logsigmoid(-x)"),
        (mul(num(-1), prim("softplus", mul(num(-1), X))), "F.logsigmoid(x)"),
        (
            mul(num(-1), prim("softplus", mul(num(-1), Map(MAPS[0], X)))),
            "F.logsigmoid(F.linear(x, W))",
        ),
        # The sign of a number costs nothing.
        (mul(num(8), prim("softplus", X)), "-8 * F.logsigmoid(-x)"),
        (mul(num(-8), prim("softplus", X), X), "8 * F.logsigmoid(-x) * x"),
        (mul(num(-1), power(prim("softplus", X), num(2))), "-((-F.logsigmoid(-x)) ** 2)"),
        (add(X, mul(num(8), prim("softplus", X))), "x - 8 * F.logsigmoid(-x)"),
    ],
)
def test_code_reads_as_a_person_would_write_it(expr: Expr, text: str) -> None:
    assert printed(expr, lead=True).text == text
