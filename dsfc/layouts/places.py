"""Where the keys of a TOML text stand: its reader gives values without places.

Headers and keys at the start of a line are found; what is written otherwise has the place of the
table around it.
"""

from __future__ import annotations

import json
import re
import tomllib

from dsfc.source import Source, Span

_HEADER = re.compile(r"^[ \t]*\[([^\[\]\n]+)\][ \t]*(?:#.*)?$", re.MULTILINE)
_KEY = re.compile(r"^[ \t]*(\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*'|[A-Za-z0-9_-]+)[ \t]*=", re.MULTILINE)
_OPERATION = re.compile(r"\bop[ \t]*=[ \t]*(\"[^\"\n]*\"|'[^'\n]*'|\S+)")
_AT = re.compile(r"\(at line (\d+), column (\d+)\)")

Path = tuple[str, ...]


class Places:
    """The places of a text."""

    def __init__(self, source: Source) -> None:
        """Finds all headers.

        Args:
            source: a TOML text.
        """
        self._source = source
        self._bounds: dict[Path, tuple[Span, int, int]] = {}
        headers = list(_HEADER.finditer(source.text))
        first, *ends = *(h.start() for h in headers), len(source.text)
        self._bounds[()] = (source.span(0, 0), 0, first)
        for header, end in zip(headers, ends, strict=True):
            span = source.span(header.start(1) - 1, header.end(1) + 1)
            self._bounds.setdefault(_path(header[1]), (span, header.end(), end))

    @property
    def top(self) -> Span:
        """The start of the text."""
        return self._source.span(0, 0)

    def table(self, path: Path) -> Span:
        """Returns the header of a table, or of the nearest one around it that has a header."""
        while path and path not in self._bounds:
            path = path[:-1]
        return self._bounds[path][0]

    def key(self, path: Path, key: str) -> Span:
        """Returns a key of a table; its header where the key is not at the start of a line."""
        if (*path, key) in self._bounds:
            return self.table((*path, key))
        if path in self._bounds:
            _, start, end = self._bounds[path]
            for match in _KEY.finditer(self._source.text, start, end):
                if _path(match[1]) == (key,):
                    return self._source.span(match.start(1), match.end(1))
        return self.table(path)

    def step(self, path: Path, number: int) -> Span:
        """Returns an operation of a row, by its number."""
        if path in self._bounds:
            _, start, end = self._bounds[path]
            spots = list(_OPERATION.finditer(self._source.text, start, end))
            if number < len(spots):
                return self._source.span(spots[number].start(), spots[number].end())
        return self.key(path, "by")

    def of_message(self, message: str) -> Span:
        """Returns the place that a message of the TOML reader names, else the start."""
        at = _AT.search(message)
        if at is None:
            return self.top
        line = min(int(at[1]), len(self._source.line_starts))
        start = self._source.line_starts[line - 1] + int(at[2]) - 1
        start = min(start, len(self._source.text))
        return self._source.span(start, start)


def _path(words: str) -> Path:
    """The keys of a header or of a key; the text itself where it is none."""
    try:
        table = tomllib.loads(f"[{words}]\n")
    except tomllib.TOMLDecodeError:
        return (json.dumps(words),)
    path = []
    while table:
        (key,) = table
        path.append(key)
        table = table[key]
    return tuple(path)
