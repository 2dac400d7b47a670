"""Masks of triangles of a matrix: texts and names."""

from __future__ import annotations

from dsfc.kernel_ir.ir import Int, Integer, Part, Triangle

from .blocks import integer


def triangle(t: Triangle, row: str, column: str) -> str:
    """The text of a mask of the entries inside a triangle, of places along its axes."""
    return f"{row} >{'=' if t.part is Part.LOWER else ''} {column}"


def mask_name(part: Triangle) -> str:
    """The variable of such a mask."""
    return f"m_{part.part.value.replace(' ', '_')}"


def exponent(power: Int) -> str:
    """The text of the exponent of a power of two."""
    match power:
        case int():
            return str(power.bit_length() - 1)
        case Integer("<<", 1, exponent):
            return integer(exponent).text
        case _:
            raise ValueError(f"{power} is no power of two")
