"""Masks of triangles of a matrix: texts and names."""

from __future__ import annotations

from dsfc.kernel_ir.ir import Part, Triangle


def triangle(t: Triangle, row: str, column: str) -> str:
    """The text of a mask of the entries inside a triangle, of places along its axes."""
    if t.block == 1:
        return f"({row} % 2 == 1) & ({column} == {row} - 1)"
    if t.block is None:
        return f"{row} >{'=' if t.part is Part.LOWER else ''} {column}"
    blocks = f"({row} // {t.block} % 2 == 1)"
    return f"{blocks} & ({column} // {t.block} == {row} // {t.block} - 1)"


def mask_name(part: Triangle) -> str:
    """The variable of such a mask."""
    name = part.part.value.replace(" ", "_")
    return f"m_{name}" if part.block is None else f"m_blocks_{part.block}"
