"""Formulas in LaTeX keep the meaning of what they print."""

from __future__ import annotations

import pytest

from dsfc.expr.arithmetic import add, sub
from dsfc.expr.build import prim
from dsfc.expr.latex import OWN, SUM, Printer
from dsfc.expr.tree import Expr, Param

A, B, C = (Param(name, frozenset()) for name in "abc")


@pytest.mark.parametrize(
    ("imaginary", "text"),
    [
        (B, r"(a + i\,b)"),
        (add(B, C), r"(a + i\,\left(b + c\right))"),
        (sub(B, C), r"(a + i\,\left(b - c\right))"),
        (prim("exp", B), r"(a + i\,e^{b})"),
    ],
    ids=["a name", "a sum", "a difference", "a function"],
)
def test_an_imaginary_part_is_multiplied_as_a_whole(imaginary: Expr, text: str) -> None:
    assert Printer(OWN)(prim("cplx", A, imaginary), SUM) == text
