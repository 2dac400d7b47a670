"""Slopes bound how much primitives move."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsfc.expr.interval import Interval
from dsfc.expr.slopes import SLOPES, slope
from dsfc.expr.table import TABLE, FieldRule

WITHOUT = {"pi", "l2norm", "rmsnorm"}
"""A number, and norms, which are compared as the quotients that they are."""

ONE = sorted(
    name
    for name in SLOPES
    if TABLE[name].arity == 1
    and not TABLE[name].along_axis
    and TABLE[name].fields is not FieldRule.COMPLEX
    and name not in ("re", "im", "conj")
)


def test_every_primitive_has_a_slope_or_a_reason_for_none() -> None:
    assert SLOPES.keys() == TABLE.keys() - WITHOUT


@pytest.mark.share(2)
@pytest.mark.parametrize("name", ONE)
@given(x=st.floats(-6, 6), y=st.floats(-6, 6), wider=st.floats(0, 2))
def test_a_primitive_moves_no_more_than_its_slope_says(
    name: str, x: float, y: float, wider: float
) -> None:
    low, high = min(x, y), max(x, y) + wider
    if name in ("log", "sqrt"):
        low, x, y, high = (v + 6.5 for v in (low, x, y, high))
    if name == "log1p":
        low, x, y, high = (v + 6 for v in (low, x, y, high))
    steep = slope(name, Interval(low, high))
    if math.isinf(steep):
        return
    value = TABLE[name].value
    moved = abs(float(value(np.asarray(x))) - float(value(np.asarray(y))))
    assert moved <= steep * abs(x - y) * (1 + 1e-9) + 1e-12


@given(st.lists(st.floats(-3, 3), min_size=2, max_size=4), st.floats(0, 0.5), st.integers(0, 15))
def test_softmax_moves_by_half_of_the_largest_move(xs: list[float], by: float, signs: int) -> None:
    x = np.asarray(xs)
    y = x + by * np.asarray([1 if signs >> k & 1 else -1 for k in range(len(xs))])
    value = TABLE["softmax"].value
    moved = np.max(np.abs(value(x, axis=-1) - value(y, axis=-1)))
    assert moved <= slope("softmax", Interval(-4.0, 4.0)) * by + 1e-12


def test_a_jump_has_a_slope_on_either_side_alone() -> None:
    assert slope("sign", Interval(1.0, 2.0)) == 0
    assert math.isinf(slope("sign", Interval(-1.0, 2.0)))
    assert math.isinf(slope("no such primitive", Interval(0.0, 1.0)))
