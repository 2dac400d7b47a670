"""Logarithms of computed decays have a slope where the decay is 0."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dsfc.expr.build import prim
from dsfc.expr.evaluate import NamedArray, evaluate
from dsfc.expr.tree import Axis, Expr, Field, Param
from dsfc.plan.graph import bounded_log

X = Param("x", frozenset(), Field.REAL)


class At:
    """A scope of one number."""

    def __init__(self, x: float) -> None:
        self.x = x

    def size(self, axis: Axis) -> int:
        raise KeyError(axis)

    def param(self, name: str) -> NamedArray:
        return NamedArray((), np.asarray(self.x))


def value(e: Expr, x: float) -> float:
    return float(evaluate(e, At(x)).data)


@pytest.mark.parametrize("x", [-1 + 2**-53, -0.999, -0.5 - 2**-53, -0.5, -0.25, -1e-12, 0.0, 3.0])
def test_a_bounded_logarithm_of_one_plus_x_has_all_its_digits(x: float) -> None:
    assert math.isclose(value(bounded_log(prim("log1p", X)), x), math.log1p(x), rel_tol=1e-15)


def test_logarithms_of_0_are_bounded() -> None:
    least = math.log(2**-126)
    assert math.isclose(value(bounded_log(prim("log", X)), 0.0), least)
    assert math.isclose(value(bounded_log(prim("log1p", X)), -1.0), least - math.log(2))
