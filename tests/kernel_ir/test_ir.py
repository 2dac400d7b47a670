"""Integers of kernels are short: numbers are calculated with at once. Arguments have names."""

from __future__ import annotations

import pytest
from small_kernels import N, kernel_of

from dsfc.kernel_ir.ir import Access, Integer, Symbol, ceil_div, minus, plus, times

L = Symbol("L")


def test_numbers_are_calculated_with_at_once() -> None:
    assert (plus(3, 4), minus(3, 4), times(3, 4)) == (7, -1, 12)


def test_what_changes_nothing_is_left_out() -> None:
    assert plus(0, L) is plus(L, 0) is minus(L, 0) is times(1, L) is times(L, 1) is L


def test_anything_else_is_an_integer_of_its_operands() -> None:
    assert plus(L, 1) == Integer("+", L, 1) and plus(1, L) == Integer("+", 1, L)
    assert minus(0, L) == Integer("-", 0, L) and minus(L, 1) == Integer("-", L, 1)
    assert times(0, L) == Integer("*", 0, L) and times(L, 2) == Integer("*", L, 2)
    assert ceil_div(L, 8) == Integer("//", Integer("+", L, 7), 8)


def test_a_kernel_gives_its_arguments_by_name() -> None:
    kernel = kernel_of(lambda k, x, y: k.sum(x * y, N))
    assert kernel.argument("y").name == "y" and kernel.argument("o").access is Access.WRITE
    with pytest.raises(KeyError):
        kernel.argument("z")
