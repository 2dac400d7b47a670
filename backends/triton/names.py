"""Names of a kernel's values as they are printed: none of Python's, Triton's or the printer's."""

from __future__ import annotations

import keyword
import re

_NAMELESS = re.compile(
    r"(product|sum|difference|neg|div|max|min|where|and|compare|exp|exp2|rename|reduce)(_\d+)?"
)
_BUILTIN = frozenset("abs all any float int iter len map max min next pow range round sum".split())


def safe_name(name: str) -> str:
    """The name of a value as a kernel may use it: no word of Python, Triton or the printer."""
    reserved = keyword.iskeyword(name) or name in _BUILTIN
    ours = re.fullmatch(r"[opmw]_\w+|at(_\d+)?|tl|program|rest|L?_.*", name)
    return f"{name}_" if reserved or ours else name


def is_nameless(name: str) -> bool:
    """Whether a name only says which operation made the value."""
    return bool(_NAMELESS.fullmatch(name))
