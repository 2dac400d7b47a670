"""Places as the protocol counts them: lines from 0, columns in the units that the editor asks for.

A line ends at a newline only, as in `Source`: form feeds and the separators of Unicode, at which
Python's `splitlines` cuts too, may stand in comments.
"""

from __future__ import annotations

from enum import Enum

from dsfc.source import Source


class Units(Enum):
    """What a column counts; the value is the protocol's word."""

    UTF8 = "utf-8"
    UTF16 = "utf-16"
    UTF32 = "utf-32"

    def width(self, text: str) -> int:
        """Returns how many units a text takes."""
        match self:
            case Units.UTF8:
                return len(text.encode("utf-8", "surrogatepass"))
            case Units.UTF16:
                return len(text) + sum(char > "\uffff" for char in text)
        return len(text)


def position(source: Source, offset: int, units: Units = Units.UTF16) -> tuple[int, int]:
    """Returns the line and column, from 0, of an offset in code points."""
    line, column = source.position(offset)
    return line - 1, units.width(source.text[offset - column + 1 : offset])


def offset(source: Source, line: int, column: int, units: Units = Units.UTF16) -> int:
    """Returns the offset of a line and column; what lies outside is moved to the edge."""
    if line >= len(source.line_starts):
        return len(source.text)
    at, left = source.line_starts[line], column
    for char in source.line(line + 1):
        if left <= 0:
            break
        left -= units.width(char)
        at += 1
    return at
