"""Names of a kernel's values: which are bound, how often each is used, which may be printed."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator

from dsfc.kernel_ir.ir import Let, Loop, Statement, Store, operands

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


def uses(body: tuple[Statement, ...], deep: bool = True) -> Iterator[str]:
    """Yields the name of a value for each use; of loops' bodies only if asked for."""
    for s in body:
        match s:
            case Let():
                yield from operands(s.operation)
            case Store():
                yield s.value
            case Loop():
                yield from (c.first for c in s.carries)
                if deep:
                    yield from uses(s.body)
                    yield from (c.next for c in s.carries)


def bound(body: tuple[Statement, ...]) -> Iterator[str]:
    """Yields the names of all values and counters."""
    for s in body:
        match s:
            case Let():
                yield s.name
            case Loop():
                yield s.counter
                yield from (name for c in s.carries for name in (c.name, c.last))
                yield from bound(s.body)
            case Store():
                pass
