"""Laws of functions that are made of exponentials and logarithms, by their definitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dsfc.trusted.polynomial import HALF, IMAGINARY, ONE, Quotient, generator, number

if TYPE_CHECKING:
    from dsfc.trusted.symbols import Symbols

IMAGINARY_UNIT = Quotient(generator(IMAGINARY))
"""The number i, as a quotient."""

TWO = number(2)


def _sigmoid(s: Symbols, x: Quotient) -> Quotient:
    return ONE / (ONE + s.exp(-x))


def _tanh(s: Symbols, x: Quotient) -> Quotient:
    return TWO / (ONE + s.exp(-(x + x))) - ONE


def _sin(s: Symbols, x: Quotient) -> Quotient:
    return (s.exp(-(IMAGINARY_UNIT * x)) - s.exp(IMAGINARY_UNIT * x)) * IMAGINARY_UNIT * HALF


def _cos(s: Symbols, x: Quotient) -> Quotient:
    return (s.exp(IMAGINARY_UNIT * x) + s.exp(-(IMAGINARY_UNIT * x))) * HALF


def _im(s: Symbols, x: Quotient) -> Quotient:
    return (s.conjugate(x) - x) * IMAGINARY_UNIT * HALF


LAWS: dict[str, Callable[..., Quotient]] = {
    "exp": lambda s, x: s.exp(x),
    "log": lambda s, x: s.log(x),
    "log1p": lambda s, x: s.log(ONE + x),
    "expm1": lambda s, x: s.exp(x) - ONE,
    "exprel": lambda s, x: (s.exp(x) - ONE) / x,
    "sigmoid": _sigmoid,
    "softplus": lambda s, x: s.log(ONE + s.exp(x)),
    "logsigmoid": lambda s, x: -s.log(ONE + s.exp(-x)),
    "silu": lambda s, x: x * _sigmoid(s, x),
    "tanh": _tanh,
    "sin": _sin,
    "cos": _cos,
    "cis": lambda s, x: s.exp(IMAGINARY_UNIT * x),
    "cplx": lambda s, a, b: a + IMAGINARY_UNIT * b,
    "conj": lambda s, x: s.conjugate(x),
    "re": lambda s, x: (x + s.conjugate(x)) * HALF,
    "im": _im,
}
"""Laws of what has one by definition."""
