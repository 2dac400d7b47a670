"""Places as the protocol counts them: lines from 0, columns in UTF-16 code units.

A line ends at a newline only, as in `Source`: form feeds and the separators of Unicode, at which
Python's `splitlines` cuts too, may stand in comments.
"""

from __future__ import annotations

from dsfc.source import Source

_PLANE = 0xFFFF
"""Code points above it take two UTF-16 units."""


def position(source: Source, offset: int) -> tuple[int, int]:
    """Returns the line and UTF-16 column, from 0, of an offset in code points."""
    line, column = source.position(offset)
    before = source.text[offset - column + 1 : offset]
    return line - 1, len(before) + sum(ord(char) > _PLANE for char in before)


def offset(source: Source, line: int, column: int) -> int:
    """Returns the offset of a line and UTF-16 column; what lies outside is moved to the edge."""
    if line >= len(source.line_starts):
        return len(source.text)
    at, units = source.line_starts[line], 0
    end = at + len(source.line(line + 1))
    while at < end and units < column:
        units += 2 if ord(source.text[at]) > _PLANE else 1
        at += 1
    return at
