"""Integers, numbers and functions of entries as C expressions."""

from __future__ import annotations

from dsfc.expr.table import row
from dsfc.kernel_ir.ir import Int, Integer, Symbol


def integer(e: Int) -> str:
    """Returns an integer as a C expression; what is no atom stands in parentheses."""
    match e:
        case int():
            return str(e)
        case Symbol(name=name):
            return name
        case Integer(operator=operator):
            left, right = integer(e.left), integer(e.right)
            if operator in _CALLS:
                return f"{_CALLS[operator]}({left}, {right})"
            return f"({left} {operator} {right})"


def python_integer(e: Int) -> str:
    """Returns an integer as a Python expression."""
    match e:
        case Integer(operator=operator):
            left, right = python_integer(e.left), python_integer(e.right)
            if operator in ("min", "max"):
                return f"{operator}({left}, {right})"
            return f"({left} {operator} {right})"
        case _:
            return integer(e)


_CALLS = {"//": "int_div", "min": "int_min", "max": "int_max"}
_OPERATORS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "and": "&"}


def number(value: float) -> str:
    """Returns a number as a C expression."""
    if value == float("inf"):
        return "INFINITY"
    if value == -float("inf"):
        return "(-INFINITY)"
    return f"((real){value!r})"


def function_call(function: str, arguments: list[str]) -> str:
    """Returns a function of entries as a C expression."""
    if function in _OPERATORS:
        left, right = arguments
        return f"({left} {_OPERATORS[function]} {right})"
    match function, arguments:
        case "neg", [x]:
            return f"(-{x})"
        case "where", [mask, x, y]:
            return f"({mask} ? {x} : {y})"
        case _:
            return row(function).printers["c"].format(*arguments)


def knows(name: str) -> bool:
    """Returns whether kernels in C compute a primitive."""
    return "c" in row(name).printers
