"""Names of generators in equations that are solved for what the second mixer alone has."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction

from dsfc.trusted.polynomial import Polynomial

ARRAY = re.compile(r"([A-Za-z_:][\w:]*)\[")
"""An array, inside the name of a generator."""

FACTOR = "κ"
"""Starts the names of the factors between states."""


def split(p: Polynomial, kind: Callable[[str], bool]) -> list[Polynomial]:
    """Returns the coefficients of the monomials in generators of one kind."""
    parts: dict[tuple[tuple[str, int], ...], dict[tuple[tuple[str, int], ...], Fraction]] = {}
    for m, c in p.terms.items():
        inside = tuple(f for f in m if kind(f[0]))
        parts.setdefault(inside, {})[tuple(f for f in m if not kind(f[0]))] = c
    return [Polynomial(terms) for _, terms in sorted(parts.items())]


def arrays(g: str) -> set[str]:
    """Returns the arrays that stand in the name of a generator."""
    return set(ARRAY.findall(g))


def affects(leaf: str, g: str) -> bool:
    """Returns whether a function is another one where an entry of a parameter has a value."""
    array, where = leaf.partition("@")[0].rstrip("]").split("[") if "[" in leaf else (leaf, "")
    if re.search(rf"(?<![\w:]){re.escape(leaf.partition('@')[0])}", g):
        return True
    at = where.split(",")
    rows = re.findall(re.escape(array) + r"\[([\d,]*);([\d,]*)\]", g)
    return any([x for x in (*each.split(","), *there.split(",")) if x]
               == at[: len([x for x in (*each.split(","), *there.split(",")) if x])]
               for each, there in rows)  # fmt: skip


def is_factor(g: str) -> bool:
    """Returns whether a generator is a factor between states."""
    return g.startswith(FACTOR)


def row_entries(head: str, count: int) -> list[str]:
    """Returns the entries of the row of a map that its result goes by the name of: `W[0;1]`."""
    array, where = head.rstrip("]").split("[")
    before = [x for x in where.split(";") if x]
    return [f"{array}[{','.join((*before, str(k)))}]" for k in range(count)]
