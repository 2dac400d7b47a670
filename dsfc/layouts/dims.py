"""Sizes of axes as a layout map writes them: sums of products of names and whole numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod

_FACTOR = re.compile(r"[0-9]{1,9}|[A-Za-z][A-Za-z0-9_]{0,63}")


@dataclass(frozen=True, slots=True)
class Dim:
    """A size such as `2*h*p + n`.

    Attributes:
        terms: of the sum: a number, and the names that it is multiplied by.
    """

    terms: tuple[tuple[int, tuple[str, ...]], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names in it, each once, in order."""
        return tuple(dict.fromkeys(name for _, names in self.terms for name in names))

    def value(self, sizes: Mapping[str, int]) -> int:
        """Returns the number that it is.

        Args:
            sizes: of all its names.
        """
        return sum(number * prod(sizes[n] for n in names) for number, names in self.terms)

    def __str__(self) -> str:
        """As a map writes it."""
        return " + ".join(map(_spelt, self.terms))


def parse_dim(text: str) -> Dim:
    """Returns the size that a text writes: names and numbers, `*` before `+`.

    Raises:
        ValueError: it is no such sum.
    """
    terms = []
    for term in text.split("+"):
        factors = [factor.strip() for factor in term.split("*")]
        if not all(_FACTOR.fullmatch(factor) for factor in factors):
            raise ValueError(f"`{text}` is no sum of products of names and numbers")
        number = prod(int(factor) for factor in factors if factor.isdigit())
        terms.append((number, tuple(factor for factor in factors if not factor.isdigit())))
    return Dim(tuple(terms))


def solve(equations: Iterable[tuple[Dim, int]], known: Mapping[str, int]) -> dict[str, int]:
    """Returns the sizes that equations tell, those that are known among them.

    An equation tells a name where all other names of it are known and the name is a factor of its
    terms once at most. What no equation tells is left out; whether all equations hold is not asked.

    Args:
        equations: sizes with their values.
        known: sizes by name.
    """
    rows, sizes = list(equations), dict(known)
    while True:
        before = len(sizes)
        for dim, value in rows:
            unknown = [name for name in dim.names if name not in sizes]
            if len(unknown) == 1 and (size := _solved(dim, value, unknown[0], sizes)) is not None:
                sizes[unknown[0]] = size
        if len(sizes) == before:
            return sizes


def _solved(dim: Dim, value: int, name: str, sizes: Mapping[str, int]) -> int | None:
    """The size of a name in an equation that is linear in it and has a whole solution."""
    factor, rest = 0, value
    for number, names in dim.terms:
        if names.count(name) > 1:
            return None
        others = number * prod(sizes[n] for n in names if n != name)
        if name in names:
            factor += others
        else:
            rest -= others
    return rest // factor if factor and rest > 0 and rest % factor == 0 else None


def _spelt(term: tuple[int, tuple[str, ...]]) -> str:
    number, names = term
    return "*".join((*([str(number)] if number != 1 or not names else []), *names))
