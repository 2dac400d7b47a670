"""Values at numbers modulo a prime: what is no sum of tokens is seen to be none."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dsfc.prover.modular import may_be_linear
from dsfc.trusted.polynomial import IMAGINARY, ONE, Quotient, generator, number

X, Y, EARLIER = (Quotient(generator(g)) for g in ("u[0]@0", "u[1]@0", "u[0]@1"))
A, B, UNIT = (Quotient(generator(g)) for g in ("a[0]", "b[0]", IMAGINARY))
F = Quotient(generator("exp(u[0]@0)"))
RESULT = Quotient(generator("W[;0](u)"))
"""What the map W makes of the two tokens, W[0,0] u[0] + W[0,1] u[1]."""

LEAVES = frozenset({"u[0]@0", "u[1]@0"})


def sum_of(g: str) -> list[tuple[str, Quotient]] | None:
    """The entries of the map's row."""
    return [("W[0,0]", X), ("W[0,1]", Y)] if g == "W[;0](u)" else None


LINEAR = [
    X,
    A * X - number(Fraction(2, 3)) * B * Y,
    (A * X + X) / (A - B),
    UNIT * A * X + UNIT * UNIT * Y,
    A * RESULT / B,
    RESULT - Y,
    (X * X + X * Y) / (X + Y),
]
OTHERS = [ONE, A, X * X, X * Y, A * X + B, EARLIER, X * EARLIER, F * X, X / (Y + ONE), X / RESULT,
          RESULT * X, A * RESULT + EARLIER]  # fmt: skip


@pytest.mark.parametrize("value", LINEAR, ids=lambda q: q.text)
def test_a_sum_of_tokens_may_be_one(value: Quotient) -> None:
    assert may_be_linear(value, LEAVES, sum_of)


@pytest.mark.parametrize("value", OTHERS, ids=lambda q: q.text)
def test_another_value_is_none(value: Quotient) -> None:
    assert not may_be_linear(value, LEAVES, sum_of)


def test_what_is_divided_by_zero_is_not_decided() -> None:
    """The row of the map less its entries is 0, which the generators do not say."""
    (w, x), (v, y) = sum_of("W[;0](u)") or []
    nothing = RESULT - Quotient(generator(w)) * x - Quotient(generator(v)) * y
    assert nothing and may_be_linear(X * X / nothing, LEAVES, sum_of)
