"""Exact equality over atoms: what it must find, and what it must not claim."""

from __future__ import annotations

import pytest
import sympy
from rational import equal
from sympy import Abs, I, Max, Rational, conjugate, exp, im, re, sqrt

x, y = sympy.symbols("x y", real=True)
z, w = sympy.symbols("z w")
sigmoid = sympy.Function("sigmoid", real=True)

SAME = [
    ((x + y) ** 3, x**3 + 3 * x**2 * y + 3 * x * y**2 + y**3),
    (1 / (x + y) + 1 / (x - y), 2 * x / (x**2 - y**2)),
    (1 / (1 + 1 / (1 + x)), (1 + x) / (2 + x)),
    (x / (2 * x + 2 * y), 1 / (1 + y / x) / 2),
    (exp(x + 2 * y), exp(x) * exp(y) ** 2),
    (exp(x / 2) ** 2 * exp(-x), sympy.Integer(1)),
    (exp(x * (x + 1)), exp(x**2) * exp(x)),
    (sqrt(1 + x) ** 3, (1 + x) * sqrt(1 + x)),
    (1 / sqrt(1 + x), sqrt(1 + x) / (1 + x)),
    (sigmoid((x + 1) ** 2) * 2, sigmoid(x**2 + 2 * x + 1) + sigmoid(1 + x * (x + 2))),
    (re(z * w), re(z) * re(w) - im(z) * im(w)),
    ((z + I) * (z - I), z**2 + 1),
    (conjugate(z * w) * z * w, z * conjugate(z) * w * conjugate(w)),
    (re(exp(I * x) * exp(-I * x)), sympy.Integer(1)),
    (Max(Abs(x * (1 + y)), 1), Max(1, Abs(x + x * y))),
    (1 / (x * I), -I / x),
    (exp(I * x), sympy.cos(x) + I * sympy.sin(x)),
    (re(exp(z * x)), exp(x * re(z)) * sympy.cos(x * im(z))),
    (Abs(2 * x * y + x), Abs(x) * Abs(2 * y + 1)),
    (1 / (x * z + y * z), (1 / z) / (x + y)),
]
DIFFERENT = [
    ((x + y) ** 2, x**2 + y**2),
    (1 / (x + y), 1 / x + 1 / y),
    (exp(x), exp(y)),
    (sigmoid(x), sigmoid(-x)),
    (z, conjugate(z)),
    (sqrt(x**2 + 1), x + 1),
    (x / (x + Rational(1, 10**9)), sympy.Integer(1)),
]


@pytest.mark.parametrize(("left", "right"), SAME)
def test_equal(left, right):
    assert equal(left, right)


@pytest.mark.parametrize(("left", "right"), DIFFERENT)
def test_not_equal(left, right):
    assert not equal(left, right)
