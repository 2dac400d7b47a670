"""Names that a printed kernel must not use: C's own, and those of the header."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from itertools import count

_KEYWORDS = frozenset(
    "auto break case char const continue default do double else enum extern float for goto if "
    "inline int long register restrict return short signed sizeof static struct switch typedef "
    "union unsigned void volatile while asm typeof main errno threads failed entries memory at "
    "given_ free_ "
    "y0 y1 yn j0 j1 jn gamma "
    # Macros of the system's headers and of GNU C.
    "NULL NAN INFINITY HUGE_VAL HUGE_VALF HUGE_VALL BYTE_ORDER unix linux i386 alloca signbit "
    "fpclassify math_errhandling NFDBITS".split()
)
_MACRO = re.compile(r"[A-Z]\w*_\w+|W[A-Z]{3,}|is[a-z]+|(be|le|htobe|htole)\d+(toh)?")


def header() -> str:
    """Returns the text of the header, with those of its parts that it includes."""
    folder = files(__package__ or "") / "runtime"

    def text(name: str) -> str:
        return (folder / name).read_text(encoding="utf-8")

    return re.sub(r'^#include "(\w+\.h)"$', lambda m: text(m[1]), text("kernel.h"), flags=re.M)


@cache
def _reserved() -> frozenset[str]:
    text = header()
    functions = re.findall(r"^(?:FUNCTION|INLINE)[^(]*?(\w+)\(", text, re.MULTILINE)
    macros = re.findall(r"^#define (\w+)", text, re.MULTILINE)
    types = re.findall(r"^typedef [^;]*?(\w+)(?: __attribute__.*)?;", text, re.MULTILINE)
    terms = re.findall(r"[A-Z]+_TERMS|(?:TERMS|COLUMNS)_\w+", text)
    return _KEYWORDS.union(functions, macros, types, terms)


def safe_names() -> Callable[[str], str]:
    """Returns a function that gives the names of one kernel their names in C, each its own."""
    names: dict[str, str] = {}

    def safe(name: str) -> str:
        if name not in names:
            stem = _safe_name(name)
            others = (f"{stem}v{k}" for k in count(2))
            taken = set(names.values())
            names[name] = stem if stem not in taken else next(n for n in others if n not in taken)
        return names[name]

    return safe


def _safe_name(name: str) -> str:
    """Returns the name, or one like it that means nothing else in C.

    Names end in an underscore here only, and hold no two of them in a row: those are the
    printer's.
    """
    name = re.sub(r"__+", "_", name)
    ours = re.fullmatch(r"slot_\d+|i_\w+", name) or _MACRO.fullmatch(name)
    return f"{name}_" if ours or name in _reserved() or name.endswith("_") else name
