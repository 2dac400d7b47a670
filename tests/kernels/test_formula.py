"""Expressions of the plan become operations of a kernel, or are said to be none."""

from __future__ import annotations

import numpy as np
import pytest

from dsfc.expr.build import add, div, mul, num, power, prim
from dsfc.expr.tree import Axis, Expr, Field, Now, Reduce, Reduction, Ref, Time
from dsfc.kernel_ir.build import KernelBuilder
from dsfc.kernel_ir.interpret import interpret
from dsfc.kernel_ir.ir import Access
from dsfc.kernel_ir.ir import Axis as TileAxis
from dsfc.kernels.formula import NoFormula, formula, is_formula

D, N = Axis(0, "d"), Axis(1, "n")
TILES = {D: TileAxis("d", 4), N: TileAxis("n", 3)}
DRAW = np.random.default_rng(0)
VALUES = {"x": DRAW.normal(size=(4, 3)), "y": 1 + DRAW.random(size=(4,))}


def leaf(name: str, *axes: Axis) -> Ref:
    return Ref(name, frozenset(axes), Field.REAL, Time.TOKEN, Now(0))


X, Y = leaf("x", D, N), leaf("y", D)
x, y = VALUES["x"], VALUES["y"][:, None]
FORMULAS: dict[str, tuple[Expr, np.ndarray]] = {
    "number": (mul(num(3), X), 3 * x),
    "sum": (add(X, Y, num(1)), x + y + 1),
    "product": (mul(X, Y), x * y),
    "quotient": (div(X, Y), x / y),
    "square": (power(X, num(2)), x**2),
    "cube": (power(X, num(3)), x**3),
    "primitive": (prim("tanh", X), np.tanh(x)),
    "exponential of any sign": (prim("exp", X), np.exp(x)),
    "sum over an axis": (Reduce(Reduction.SUM, N, X), x.sum(1)),
    "quotient of primitives": (div(prim("sin", X), prim("exp", Y)), np.sin(x) / np.exp(y)),
}


@pytest.mark.parametrize("what", FORMULAS)
def test_a_formula_computes_the_expression(what: str) -> None:
    expr, want = FORMULAS[what]
    assert is_formula(expr, lambda _: True)
    k = KernelBuilder("one", "A formula.")
    arguments = {"x": k.argument("x", (4, 3)), "y": k.argument("y", (4,))}
    at = {"x": [k.all(TILES[D]), k.all(TILES[N])], "y": [k.all(TILES[D])]}
    tile = formula(expr, k, lambda name: k.load(arguments[name], *at[name]), TILES)
    axes = [t for t in TILES.values() if t in tile.axes]
    o = k.argument("o", tuple(t.size for t in axes), Access.WRITE)
    k.store(o, *(k.all(t) for t in axes), value=tile)
    assert np.allclose(interpret(k.kernel(), VALUES, {})["o"], want, rtol=1e-13)


NONE: dict[str, Expr] = {
    "a function along an axis": prim("softmax", X, axis=N),
    "a power of another exponent": power(Y, num(5)),
    "a larger of one": prim("max", power(Y, num(5)), X),
    "a maximum over an axis": Reduce(Reduction.MAX, N, X),
    "a quotient of one": div(power(Y, num(5)), X),
    "a quotient by one": div(X, power(Y, num(5))),
    "a sum over an axis of one": Reduce(Reduction.SUM, N, mul(X, power(Y, num(5)))),
}


@pytest.mark.parametrize("what", NONE)
def test_what_no_kernel_computes_is_no_formula(what: str) -> None:
    assert not is_formula(NONE[what], lambda _: True)
    k = KernelBuilder("one", "No formula.")
    with pytest.raises((NoFormula, TypeError)):
        formula(NONE[what], k, lambda _: k.const(1.0), TILES)


def test_a_target_says_which_primitives_it_has() -> None:
    e = add(mul(X, prim("tanh", Y)), prim("exp", X))
    assert is_formula(e, {"tanh", "exp"}.__contains__)
    assert not is_formula(e, {"exp"}.__contains__)
    assert not is_formula(e, {"tanh"}.__contains__)
