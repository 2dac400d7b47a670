"""Lines of C: statements, blocks and nested loops, indented and wrapped."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Literal

from dsfc.kernel_ir.ir import Axis

_WIDTH = 98
"""The most characters of a line."""


class Text:
    """The lines that are printed so far."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.indent = 0

    @contextmanager
    def loops(
        self,
        axes: tuple[Axis, ...],
        counts: dict[Axis, str] | None = None,
        simd: str | Literal[False] = "",
    ) -> Iterator[dict[Axis, str]]:
        """Prints nested loops over axes, the last one by vectors; yields the index of each axis.

        Args:
            axes: from the outermost loop on.
            counts: iterations along an axis; its size if not named.
            simd: clauses of the last loop, which runs by vectors; False for none.
        """
        indices = {a: f"i_{a.name}" for a in axes}
        opened = 0
        for k, a in enumerate(axes):
            if k + 1 == len(axes) and simd is not False:
                self.line(f"#pragma omp simd {simd}".rstrip())
            count = (counts or {}).get(a, size(a))
            i = indices[a]
            self.line(f"for (int64_t {i} = 0; {i} < {count}; {i}++) {{")
            self.indent += 1
            opened += 1
        yield indices
        for _ in range(opened):
            self.indent -= 1
            self.line("}")

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Prints a block of statements behind a head."""
        self.line(f"{head} {{" if head else "{")
        self.indent += 1
        yield
        self.indent -= 1
        self.line("}")

    def line(self, text: str) -> None:
        """Prints a statement, wrapped; a directive stays one line."""
        indent = "  " * self.indent
        lines = textwrap.wrap(
            text,
            _WIDTH,
            initial_indent=indent,
            subsequent_indent=indent + "    ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        self.lines += [indent + text] if text.startswith("#") else lines


def size(axis: Axis) -> str:
    """Returns the number of entries along an axis as a C expression."""
    return str(axis.size)


def product(a: str, b: str) -> str:
    """Returns a · b, without factors of 1."""
    if "0" in (a, b):
        return "0"
    if a == "1":
        return b
    return a if b == "1" else f"{a} * {b}"


def times(parts: Iterable[str]) -> str:
    """Returns the product of positive integers; empty for 1."""
    return " * ".join(p for p in parts if p != "1")


def total(terms: Iterable[str]) -> str:
    """Returns the sum of integers."""
    return " + ".join(t for t in terms if t != "0") or "0"
