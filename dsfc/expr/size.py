"""The value of a size that is computed from others, exactly."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from dsfc.expr.tree import Add, Div, Expr, Mul, Num, Pow, Size

STEEPEST = 64
"""No power in a size is higher; values are exact up to it."""
LARGEST = 2**40
"""No axis is longer; sizes of sizes would soon be numbers with more digits than there is memory."""


def size_value(size: Expr, known: Mapping[str, int]) -> Fraction | None:
    """Returns the exact value of a size, None where it is not rational."""
    match size:
        case Num():
            return size.value
        case Size():
            return Fraction(known[size.axis.name])
        case Add() | Mul():
            out = Fraction(0 if isinstance(size, Add) else 1)
            for arg in size.args:
                value = size_value(arg, known)
                if value is None:
                    return None
                out = out + value if isinstance(size, Add) else out * value
            return out
        case Div():
            top, bottom = size_value(size.num, known), size_value(size.den, known)
            return None if top is None or not bottom else top / bottom
        case Pow():
            return _power(size_value(size.base, known), size_value(size.exponent, known))
        case _:
            return None


def _power(base: Fraction | None, exponent: Fraction | None) -> Fraction | None:
    if base is None or exponent is None or abs(exponent) > STEEPEST:
        return None
    if base == 0 and exponent < 0:
        return None
    digits = max(base.numerator.bit_length(), base.denominator.bit_length())
    if digits > LARGEST.bit_length() or exponent.denominator > STEEPEST:
        return None
    if exponent.denominator == 1:
        return base**exponent.numerator
    try:
        root = round(float(base) ** float(exponent)) if base > 0 else 0
    except OverflowError:
        return None
    exact = Fraction(root) ** exponent.denominator == base**exponent.numerator
    return Fraction(root) if root and exact else None
