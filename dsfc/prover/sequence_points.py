"""Points for the rule "test-sequences": numbers for a's parameters, letters, and sequences of them.

Those of the first kind are plain: one letter, repeated, scaled or with zeros between, and numbers
that are alike but for one array, which is 0 or alone other than 0. Of the second kind all numbers
are drawn, and the sequences are all of a length.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import islice, product
from math import prod

from dsfc.expr.declarations import Constraint, MapTensor, Tensor
from dsfc.system.known import fixed
from dsfc.trusted.claim import Claim, Number, SeparatingSequences
from dsfc.trusted.witness import in_range, stored_axes

DRAWN = (Fraction(1), Fraction(2), Fraction(3), Fraction(0), Fraction(-1))
OTHER = tuple(x for x in DRAWN if x)
SEED = 1
"""Seed of the random points."""

SCALES = (
    ((1,), ((0, 0, 0, 0),)),
    ((1, 2), ((0, 0, 0), (1, 1, 1))),
    ((1, -1), ((0, 0, 0), (1, 1, 1))),
    ((1, 0), ((0, 1, 0), (0, 0), (1,))),
    ((1, 2), ((0, 0, 0), (0, 1, 0), (1, 0))),
)
"""Multiples of one token that are letters, and sequences of them."""

EXCHANGED = ((0, 1, 2, 3), (0, 2, 1, 3), (1, 2, 3), (2, 1, 3))
"""Two tokens between others, in both orders, and the same without the first."""

_Array = Tensor | MapTensor
Values = tuple[tuple[str, tuple[Number, ...]], ...]
"""(name in a, entries)."""


def _next(k: int) -> int:
    return k + 1


def _first_entry(k: int) -> int:
    return int(k == 0)


def plain_points(claim: Claim, count: int) -> Iterator[SeparatingSequences]:
    """Yields points whose numbers are alike, the simplest first.

    Args:
        claim: the two systems and the sizes.
        count: how many values of a's parameters, each with all scales.
    """
    of = _Arrays(claim)
    # One entry of a token of one input is enough to see what a map does.
    token = _first_entry if len(claim.a.inputs) == 1 else _next
    # A function of tokens has a value of its own at each: of it more sequences say little.
    every = SCALES if claim.locality is None else SCALES[:-1]
    for values in islice(plain_values(claim), count):
        for scales, sequences in every:
            letters = tuple(
                tuple((t.name, of.array(t, token, scale)) for t in claim.a.inputs)
                for scale in scales
            )
            if len(set(letters)) == len(letters):
                yield SeparatingSequences(values, letters, sequences, entries=True, parts=())


def plain_values(claim: Claim) -> Iterator[Values]:
    """Yields values of a's parameters: 1, 2, …, with one array or all but one 0.

    Args:
        claim: the two systems and the sizes.
    """
    of = _Arrays(claim)
    first = {t.name: of.array(t, _next) for t in of.params}
    zeros = {t.name: of.array(t, _next, 0) for t in of.params}
    yield tuple(first.items())
    for name in first:
        yield tuple({**first, name: zeros[name]}.items())
    for name in first:
        yield tuple({**zeros, name: first[name]}.items())


def drawn_point(claim: Claim, count: int, length: int, draw: int) -> SeparatingSequences:
    """Returns a point of drawn numbers, with all sequences of a length.

    Args:
        claim: the two systems and the sizes.
        count: how many letters.
        length: of the sequences.
        draw: which of the points of this shape.
    """
    rng = random.Random(f"{draw} {count} {SEED}")
    of = _Arrays(claim)

    def drawn(tensors: tuple[_Array, ...], numbers: tuple[Fraction, ...]) -> Values:
        return tuple(
            (t.name, of.array(t, lambda _: rng.choice(numbers)))
            for t in tensors
            if t.name not in of.known
        )

    values = drawn((*claim.a.params, *claim.a.buffers), DRAWN[:3])
    letters = tuple(drawn(claim.a.inputs, DRAWN) for _ in range(count))
    sequences = tuple(product(range(count), repeat=length))
    return SeparatingSequences(values, letters, sequences, entries=False, parts=())


def exchanged_point(claim: Claim) -> SeparatingSequences:
    """Returns a point of drawn tokens, with sequences in which two of them change places.

    Those without the first token are there too: what it adds is a product of what is between.

    Args:
        claim: the two systems and the sizes.
    """
    rng = random.Random(SEED)
    of = _Arrays(claim)
    letters = tuple(
        tuple((t.name, of.array(t, lambda _: rng.choice(OTHER))) for t in claim.a.inputs)
        for _ in range(4)
    )
    return SeparatingSequences(next(plain_values(claim)), letters, EXCHANGED, True, parts=())


class _Arrays:
    """What a point of a has values of."""

    def __init__(self, claim: Claim) -> None:
        self.known = fixed(claim.a)
        arrays = (*claim.a.params, *claim.a.buffers)
        self.params = [t for t in arrays if t.name not in self.known]
        self._sizes = dict(claim.sizes)
        names = dict(claim.names)
        self._theirs = {names.get(t.name, t.name): t.constraint for t in claim.b.inputs}

    def array(
        self, t: _Array, entry: Callable[[int], Fraction | int], scale: int = 1
    ) -> tuple[Number, ...]:
        """Returns multiples of entries, or others like them that both declarations allow."""
        count = prod(self._sizes[axis.name] for axis in stored_axes(t))
        return tuple(self._allowed(t, Fraction(scale * entry(k))) for k in range(count))

    def _allowed(self, t: _Array, x: Fraction) -> Number:
        if not isinstance(t, MapTensor):
            constraints = t.constraint, self._theirs.get(t.name, Constraint.NONE)
            for near in (x, abs(x), Fraction(1), 1 / (2 + abs(x))):
                if all(in_range(near, c) for c in constraints):
                    return near.numerator, near.denominator, 0, 1
        return x.numerator, x.denominator, 0, 1
