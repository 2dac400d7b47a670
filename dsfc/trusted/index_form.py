"""Values as sums of terms with indices, for one axis: how many indices, and what carries them.

A *carrier* is something of which every entry can be put to 0 by itself: an array, or a function of
one. A set of carriers hits a value along an axis if every term of the value has an entry of one of
them, with the index of this axis, as a factor.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import product

from dsfc.expr.tree import Axis

Hits = frozenset[frozenset[str]]
"""Sets of carriers, each of which hits all terms; {∅} where there are no terms."""

NONE: Hits = frozenset()
"""No set is known that hits all terms."""
NO_TERMS: Hits = frozenset({frozenset()})

HITS_LIMIT = 12
"""Sets that are kept; to forget some is to know less."""


class NoCount(Exception):
    """Terms have no bounded number of indices; the text says why."""


@dataclass(frozen=True, slots=True)
class Form:
    """A value as a sum of terms over one denominator, for one axis.

    Attributes:
        summed: summed indices of one term, at most.
        below: summed indices of a denominator that holds states, at most; other denominators
            are parts of their terms.
        carriers: axis of the value → what hits its terms.
        divided: whether there is a denominator.
        stateful: whether states are read.
    """

    summed: int = 0
    below: int = 0
    carriers: Mapping[Axis, Hits] = field(default_factory=dict)
    divided: bool = False
    stateful: bool = False

    def hits(self, axis: Axis) -> Hits:
        """Returns what hits all terms along an axis."""
        return self.carriers.get(axis, NONE)


PLAIN = Form()


def single(name: str) -> Hits:
    """Returns what hits the terms of an array."""
    return frozenset({frozenset({name})})


def either(*parts: Hits) -> Hits:
    """Returns what hits a product: what hits one of its factors."""
    return _least(s for hits in parts for s in hits)


def both(*parts: Hits) -> Hits:
    """Returns what hits a sum: what hits each of its summands, taken together."""
    out: Hits = NO_TERMS
    for hits in parts:
        out = _least(a | b for a, b in product(out, hits))
    return out


def _least(sets: Iterable[frozenset[str]]) -> Hits:
    """The sets that contain no other, the smallest of them."""
    kept: list[frozenset[str]] = []
    for s in sorted(set(sets), key=lambda s: (len(s), sorted(s))):
        if not any(other <= s for other in kept):
            kept.append(s)
    return frozenset(kept[:HITS_LIMIT])


def times(*forms: Form) -> Form:
    """Returns a product."""
    axes = dict.fromkeys(a for f in forms for a in f.carriers)
    return Form(
        sum(f.summed for f in forms),
        sum(f.below for f in forms),
        {a: either(*(f.hits(a) for f in forms)) for a in axes},
        any(f.divided for f in forms),
        any(f.stateful for f in forms),
    )


def plus(*forms: Form) -> Form:
    """Returns a sum."""
    if not forms:
        return PLAIN
    below = sum(f.below for f in forms)
    axes = dict.fromkeys(a for f in forms for a in f.carriers)
    return Form(
        max(f.summed + below - f.below for f in forms),
        below,
        {a: both(*(f.hits(a) for f in forms)) for a in axes},
        any(f.divided for f in forms),
        any(f.stateful for f in forms),
    )
