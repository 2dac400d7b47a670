"""Axes that only `ones` gives a value."""

from __future__ import annotations

from dsfc.expr.build import effective_axes, lean, mul, ones, prim
from dsfc.expr.tree import Axis, Field, LinearMap, Map, Param

H, N = Axis(0, "h", True), Axis(1, "n", False)
W = LinearMap("W", (), (H,), (H,), Field.REAL)


def test_a_function_of_ones_has_no_axes() -> None:
    assert effective_axes(prim("sigmoid", ones((H, N)))) == frozenset()
    assert lean(prim("sigmoid", ones((H, N)))).axes == frozenset()


def test_what_varies_keeps_its_axes() -> None:
    p = Param("p", frozenset({H}), Field.REAL)
    value = mul(prim("exp", p), prim("sigmoid", ones((H, N))))
    assert lean(value).axes == effective_axes(value) == {H}


def test_a_map_of_ones_varies() -> None:
    value = Map(W, ones((H,)))
    assert effective_axes(value) == {H}
    assert lean(value) is value
