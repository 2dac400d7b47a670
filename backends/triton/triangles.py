"""Masks of triangles of a matrix: texts and names."""

from __future__ import annotations

from dsfc.kernel_ir.ir import Part, Triangle


def triangle(t: Triangle, row: str, column: str) -> str:
    """The text of a mask of the entries inside a triangle, of places along its axes."""
    lower = t.part in (Part.LOWER, Part.STRICTLY_LOWER)
    if t.block == 1:
        later, earlier = (row, column) if lower else (column, row)
        return f"({later} % 2 == 1) & ({earlier} == {later} - 1)"
    if t.block is None:
        equal = "=" if t.part in (Part.LOWER, Part.UPPER) else ""
        return f"{row} {'>' if lower else '<'}{equal} {column}"
    later, earlier = (row, column) if lower else (column, row)
    blocks = f"({later} // {t.block} % 2 == 1)"
    return f"{blocks} & ({earlier} // {t.block} == {later} // {t.block} - 1)"


def mask_name(part: Triangle) -> str:
    """The variable of such a mask."""
    name = part.part.value.replace(" ", "_")
    return f"m_{name}" if part.block is None else f"m_blocks_{part.block}"
