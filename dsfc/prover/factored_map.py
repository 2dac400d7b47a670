"""A map of a as two of b's own, one after the other, through an axis of b's own.

The inner one is a's map, its result laid along the axis, and the outer one puts each entry where it
belongs; so the axis must have room for it. Other parameters of a's name with further axes are alike
along these. Nothing here is trusted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from math import prod

from dsfc.expr.declarations import MapTensor, Tensor
from dsfc.expr.tree import Axis, LinearMap
from dsfc.prover.condition_polynomials import condition
from dsfc.trusted.alpha_rename import alpha_rename, own_names
from dsfc.trusted.claim import Claim, Condition
from dsfc.trusted.comparable import array_names, own_parameters
from dsfc.trusted.polynomial import ONE, ZERO, Quotient, generator
from dsfc.trusted.witness import stored_axes

ENTRIES = 64
"""Entries of one map."""


def factored_map(claim: Claim) -> Iterator[Claim]:
    """Yields claims that a is a case of b, where b's own maps are two that follow one another.

    Args:
        claim: without conditions.
    """
    clashing = own_names(claim)
    ours: dict[str, Tensor | MapTensor] = {t.name: t for t in claim.a.params}
    theirs: list[Tensor | MapTensor] = [*claim.b.params]
    told = tuple(
        t.name
        for t in theirs
        if t.name in clashing and t.name in ours and _widened(ours[t.name], t)
    )
    at = replace(claim, apart=told)
    renamed = alpha_rename(at)
    names, own = array_names(renamed, True), own_parameters(renamed)
    mine = [t for t in renamed.b.params if names.get(t.name, t.name) in own]
    maps = [t.map for t in mine if isinstance(t, MapTensor)]
    back = {new: old for old, new in clashing.items()}
    wide = [(ours[back[t.name]], t) for t in mine if t.name in back and back[t.name] in told]
    if len(maps) != 2 or len(maps) + len(wide) != len(mine):
        return
    search = _Entries(renamed)
    alike = [c for a, b in wide for c in search.alike(a, b)]
    for inner, outer in (maps, maps[::-1]):
        if inner.target != outer.source or len(inner.target) != 1 or inner.each:
            continue
        for other in ours.values():
            if isinstance(other, MapTensor) and other.name not in {t.name for t in theirs}:
                values = search.through(other.map, inner, outer)
                if values:
                    yield replace(at, conditions=(*alike, *values))


def _widened(ours: Tensor | MapTensor, theirs: Tensor | MapTensor) -> bool:
    """Whether b has more axes than a where both have one name."""
    if isinstance(ours, MapTensor) or isinstance(theirs, MapTensor) or ours.field != theirs.field:
        return False
    return {x.name for x in ours.axes} < {x.name for x in theirs.axes}


class _Entries:
    """Conditions that give entries of b values."""

    def __init__(self, claim: Claim) -> None:
        self.sizes = dict(claim.sizes)
        self.first, self.second = array_names(claim, False), array_names(claim, True)

    def alike(self, ours: Tensor | MapTensor, theirs: Tensor | MapTensor) -> Iterator[Condition]:
        """Yields that b's parameter is a's, whatever the index along further axes."""
        axes = stored_axes(theirs)
        for place in self._places(axes):
            index = dict(zip((x.name for x in axes), place, strict=True))
            at = tuple(index[x.name] for x in stored_axes(ours))
            yield self._equal(theirs.name, place, self._ours(ours.name, at))

    def through(self, ours: LinearMap, inner: LinearMap, outer: LinearMap) -> list[Condition]:
        """Returns that two maps make one of a; nothing where they cannot."""
        (between,) = inner.target
        kept, where = (*ours.each, *ours.target), (*outer.each, *outer.target)
        sources = [x.name for x in ours.source] == [x.name for x in inner.source]
        fields = len({ours.field, inner.field, outer.field}) == 1
        fits = {x.name for x in kept} <= {x.name for x in where}
        counts = [prod(self.sizes[x.name] for x in axes) for axes in
                  (kept, (between,), (*inner.source, between), (*where, between))]  # fmt: skip
        adjoint = ours.adjoint or inner.adjoint or outer.adjoint
        if not (sources and fields and fits) or adjoint or ours.each:
            return []
        if counts[0] > counts[1] or max(counts[2:]) > ENTRIES:
            return []
        laid = self._places(kept)
        out = []
        for k, *rest in self._places((between, *inner.source)):
            value = self._ours(ours.name, (*laid[k], *rest)) if k < len(laid) else ZERO
            out.append(self._equal(inner.name, (k, *rest), value))
        for place in self._places((*where, between)):
            index = dict(zip((x.name for x in where), place[:-1], strict=True))
            here = place[-1] < len(laid) and laid[place[-1]] == tuple(index[x.name] for x in kept)
            out.append(self._equal(outer.name, place, ONE if here else ZERO))
        return out

    def _places(self, axes: tuple[Axis, ...]) -> list[tuple[int, ...]]:
        return list(product(*(range(self.sizes[x.name]) for x in axes)))

    def _ours(self, name: str, at: tuple[int, ...]) -> Quotient:
        return Quotient(generator(f"{self.first.get(name, name)}[{','.join(map(str, at))}]"))

    def _equal(self, name: str, at: tuple[int, ...], value: Quotient) -> Condition:
        entry = f"{self.second.get(name, name)}[{','.join(map(str, at))}]"
        return condition((Quotient(generator(entry)) - value).num, entry)
