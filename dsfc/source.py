"""Texts and positions in them.

A `Span` is a half-open range of code points of one `Source`. Spans never take part in the equality
of the values that carry them: two spellings of one program are equal.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Source:
    """A text with the name it is reported under.

    Attributes:
        name: what messages call the text: a path as the user gave it, or a word such as `<text>`.
        text: the text itself, as read; no line ending or byte-order mark has been touched.
    """

    name: str
    text: str
    line_starts: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Finds the start of every line once."""
        starts = [0, *(at + 1 for at, char in enumerate(self.text) if char == "\n")]
        object.__setattr__(self, "line_starts", tuple(starts))

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of `offset`, both counted from 1, columns in code points."""
        line = bisect_right(self.line_starts, offset)
        return line, offset - self.line_starts[line - 1] + 1

    def line(self, number: int) -> str:
        """Text of line `number` (from 1) without its line ending."""
        start = self.line_starts[number - 1]
        last = number == len(self.line_starts)
        end = len(self.text) if last else self.line_starts[number] - 1
        return self.text[start:end].removesuffix("\r")

    def byte_offset(self, offset: int) -> int:
        """Position of `offset` in the UTF-8 encoding of the text."""
        return len(self.text[:offset].encode("utf-8", "surrogatepass"))

    def span(self, start: int = 0, end: int | None = None) -> Span:
        """Range of this text, the whole of it by default."""
        return Span(self, start, len(self.text) if end is None else end)


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open range of code points `[start, end)` of one source."""

    source: Source = field(repr=False)
    start: int
    end: int

    @property
    def line(self) -> int:
        """Line of the first code point, from 1."""
        return self.source.position(self.start)[0]

    @property
    def column(self) -> int:
        """Column of the first code point, from 1, in code points."""
        return self.source.position(self.start)[1]

    @property
    def text(self) -> str:
        """The spelling in the source."""
        return self.source.text[self.start : self.end]

    def to(self, other: Span) -> Span:
        """Smallest range that covers this one and `other` (of the same source)."""
        return Span(self.source, min(self.start, other.start), max(self.end, other.end))

    def __str__(self) -> str:
        """`name:line:column`, which terminals and editors make a link of."""
        return f"{self.source.name}:{self.line}:{self.column}"


NOWHERE = Source("<none>", "").span()
"""Span of what no text says: nodes built by a program."""
