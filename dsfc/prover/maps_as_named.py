"""Values of b's own linear maps that are looked at first: maps of a, the identity, and 0.

A layer with other names, with roles exchanged or with one map for all heads is a case of another by
maps that are maps of a. Axes of b's own stand for axes of a of the same size. Each map of a is part
of one of b's. Nothing here is trusted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice, product
from math import prod

from dsfc.expr.declarations import MapTensor
from dsfc.expr.tree import Axis, LinearMap
from dsfc.prover.condition_polynomials import condition
from dsfc.trusted.alpha_rename import alpha_rename, own_names
from dsfc.trusted.claim import Claim, Condition
from dsfc.trusted.comparable import array_names, own_parameters
from dsfc.trusted.polynomial import ONE, ZERO, Quotient, generator, total

WAYS = 600
"""Ways to give all maps values that are put in order."""

MOST = 3
"""Maps of b's own."""

ENTRIES = 64
"""Entries of one map."""

Values = Mapping[tuple[int, ...], Quotient]
"""Index of an entry → its value."""

Option = tuple[tuple[str, ...], Values]
"""Names of the maps that one is a product of, and its entries."""


def maps_as_named(claim: Claim) -> Iterator[Claim]:
    """Yields claims that a is a case of b, with a value for each linear map that b alone has.

    Args:
        claim: without conditions.
    """
    clashing = own_names(claim)
    told = tuple(t.name for t in claim.b.params if isinstance(t, MapTensor) and t.name in clashing)
    at = replace(claim, apart=told)
    renamed = alpha_rename(at)
    own = own_parameters(renamed)
    names = array_names(renamed, True)
    maps = [t.map for t in renamed.b.params if isinstance(t, MapTensor)
            if names.get(t.name, t.name) in own]  # fmt: skip
    if not 1 <= len(maps) <= MOST:
        return
    search = _Search(renamed)
    options = [list(search.options(m)) for m in maps]
    if not all(options):
        return
    ways = [way for way in islice(product(*options), WAYS) if search.uses_all(way)]
    for way in sorted(ways, key=lambda way: search.rank(maps, way)):
        conditions: list[Condition] = []
        for m, (_, values) in zip(maps, way, strict=True):
            for index, value in values.items():
                name = f"{names.get(m.name, m.name)}[{','.join(map(str, index))}]"
                conditions.append(condition((Quotient(generator(name)) - value).num, name))
        yield replace(at, conditions=tuple(conditions))


class _Search:
    """The values tried for a map of b."""

    def __init__(self, claim: Claim) -> None:
        self.sizes = dict(claim.sizes)
        self.names = array_names(claim, False)
        self.theirs = [t.map for t in claim.a.params if isinstance(t, MapTensor)]
        self.axes = [d.axis.name for d in claim.a.axes]

    def options(self, m: LinearMap) -> Iterator[Option]:
        """Yields what a map may be, by names of maps of a, "1" or "0", with its entries.

        A square map of a may follow another: W_K of the second is M W_K of the first.
        """
        stored = (*m.each, *m.target, *m.source)
        if prod(self._size(x) for x in stored) > ENTRIES:
            return
        places = list(product(*(range(self._size(x)) for x in stored)))
        for other in self.theirs:
            at = self._positions(other, m)
            if at is None or other.field is not m.field:
                continue
            plain = {place: self._entry(other, [place[k] for k in at]) for place in places}
            yield (other.name,), plain
            for square in self.theirs:
                where = self._followed(square, m)
                if where is not None and other is not square:
                    yield (
                        (square.name, other.name),
                        {
                            place: total(
                                self._entry(square, [place[where], k])
                                * plain[(*place[:where], k, *place[where + 1 :])]
                                for k in range(self._size(stored[where]))
                            )
                            for place in places
                        },
                    )
        if not m.each and len(m.target) == len(m.source) == 1:
            if self._size(m.target[0]) == self._size(m.source[0]):
                yield ("1",), {place: ONE if place[0] == place[1] else ZERO for place in places}
            yield ("0",), dict.fromkeys(places, ZERO)

    def _entry(self, m: LinearMap, at: list[int]) -> Quotient:
        array = self.names.get(m.name, m.name)
        return Quotient(generator(f"{array}[{','.join(map(str, at))}]"))

    def _followed(self, square: LinearMap, m: LinearMap) -> int | None:
        """The place of the axis of m's result on which a square map of a acts."""
        if square.each or square.adjoint or m.adjoint or square.field is not m.field:
            return None
        if len(square.target) != 1 or [x.name for x in square.target] != [
            x.name for x in square.source
        ]:
            return None
        kept = [x.name for x in (*m.each, *m.target)]
        name = square.target[0].name
        return kept.index(name) if name in kept else None

    def uses_all(self, way: tuple[Option, ...]) -> bool:
        """Whether each map of a is part of one of b's: else a's output is of more than b's."""
        used = {name for names, _ in way for name in names}
        return used >= {m.name for m in self.theirs}

    def rank(self, maps: list[LinearMap], way: tuple[Option, ...]) -> tuple[int, int]:
        """How far a way is from one in which maps have their own names, and each stands once.

        Of those with equal numbers the ways come in order.
        """
        count = Counter(name for names, _ in way for name in names)
        last = [names[-1] for names, _ in way]
        renamed = sum(name != m.name.rstrip("_") for m, name in zip(maps, last, strict=True))
        return sum(k - 1 for k in count.values()), renamed

    def _size(self, axis: Axis) -> int:
        return self.sizes[axis.name]

    def _positions(self, mine: LinearMap, m: LinearMap) -> list[int] | None:
        """Where among the axes of m those of a's map stand; None where they do not.

        What is contracted is the same; what m has besides, all entries along it are alike.
        """
        if mine.adjoint or m.adjoint:
            return None
        kept, source = (*m.each, *m.target), m.source
        at: list[int] = []
        for axis in (*mine.each, *mine.target):
            fits = [k for k, x in enumerate(kept) if self._alike(axis, x) and k not in at]
            if not fits:
                return None
            at.append(fits[0])
        if len(mine.source) != len(source):
            return None
        if not all(self._alike(x, y) for x, y in zip(mine.source, source, strict=True)):
            return None
        return at + [len(kept) + k for k in range(len(source))]

    def _alike(self, mine: Axis, axis: Axis) -> bool:
        """Whether an axis of b is one of a, or b's own and of its size."""
        own = axis.name not in self.axes
        return mine.name == axis.name or (own and self._size(mine) == self._size(axis))
