"""Sizes that go together: what two mixers declare of their axes holds of both at once.

A size that a spec derives from others (n = d / h) is a fact of it, and so is that a copy of an axis
has its size, and that two of which one is renamed to the other have one size. A size that is a
number (h = 4) is a default, and may be any other. What is claimed at sizes that break a fact is
claimed of nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import prod

from dsfc.expr.build import walk
from dsfc.expr.declarations import Dimension
from dsfc.expr.size import size_value
from dsfc.expr.text import text
from dsfc.expr.tree import Axis, Expr, Num, Rename, Size
from dsfc.system.ir import System
from dsfc.trusted.claim import Claim
from dsfc.trusted.rejected import Rejected

SMALL = 8
"""Sizes up to this one are tried, times products of the numbers that facts hold."""
NUMBERS = 5
"""How many of these numbers are multiplied."""
WIDTHS = (4, 8, 16, 32, 64)
"""How many sizes of each axis are tried, at first and later."""
TRIED = 40_000
"""Sizes of all axes that are tried at most, of one width."""


@dataclass(frozen=True, slots=True)
class Fact:
    """The size of an axis is what a mixer derives it as.

    Attributes:
        name: the axis.
        size: of others.
    """

    name: str
    size: Expr

    @property
    def text(self) -> str:
        """The fact as the mixer states it."""
        return f"{self.name} = {text(self.size)}"

    @property
    def names(self) -> frozenset[str]:
        """The axes that the size is derived from."""
        return frozenset(e.axis.name for e in walk(self.size) if isinstance(e, Size))

    def holds(self, sizes: Mapping[str, int]) -> bool:
        """Returns whether sizes keep the fact; all of its axes have one."""
        return size_value(self.size, sizes) == sizes[self.name]


def facts(a: System, b: System) -> tuple[Fact, ...]:
    """Returns what two mixers declare of sizes, each fact once."""
    out: dict[str, Fact] = {}
    for d in (*a.axes, *b.axes):
        size = _derived(d)
        if size is not None:
            fact = Fact(d.axis.name, size)
            out.setdefault(fact.text, fact)
    for fact in (*_renamed(a), *_renamed(b)):
        out.setdefault(fact.text, fact)
    return tuple(out.values())


@lru_cache(maxsize=64)
def _renamed(system: System) -> tuple[Fact, ...]:
    """What is said of sizes by `rename[n, m](x)`; of a copy it is said anyway."""
    values = [d.value for d in system.definition]
    values += [t.init.value for t in system.buffers if t.init is not None]
    pairs = {
        tuple(sorted((e.old, e.new), key=lambda axis: axis.name))
        for value in values
        for e in walk(value)
        if isinstance(e, Rename) and (e.old.copy_of or e.old.name) != (e.new.copy_of or e.new.name)
    }
    named = sorted((second.name, first.name) for first, second in pairs)
    return tuple(Fact(name, Size(Axis(0, other))) for name, other in named)


def _derived(d: Dimension) -> Expr | None:
    if d.axis.copy_of is not None:
        return Size(Axis(0, d.axis.copy_of))
    return None if d.default else d.size


def check_sizes(claim: Claim) -> None:
    """Checks that there are sizes of both mixers that a claim speaks of, and no others.

    Axes in `every` have any; those of all others are the claim's.

    Raises:
        Rejected: none keep what both declare, or an axis is none of theirs.
    """
    axes = {d.axis.name for s in (claim.a, claim.b) for d in s.axes}
    if len(dict(claim.sizes)) != len(claim.sizes):
        raise Rejected("an axis has two sizes")
    for name, _ in claim.sizes:
        if name not in axes:
            raise Rejected(f"`{name}` has a size, and is no axis of the two")
    known = facts(claim.a, claim.b)
    sizes = {name: size for name, size in claim.sizes if name not in claim.every}
    for fact in known:
        if {fact.name, *fact.names} <= sizes.keys() and not fact.holds(sizes):
            raise Rejected(f"the sizes do not keep {fact.text}")
    if claim.every and kept(claim.a, claim.b, sizes, 1) is None:
        raise Rejected(f"there are no sizes that keep {' and '.join(f.text for f in known)}")


def kept(
    a: System, b: System, fixed_sizes: Mapping[str, int], least: int, but: Collection[str] = ()
) -> dict[str, int] | None:
    """Returns small sizes of all axes that keep what both mixers declare, None where none do.

    Args:
        a: one mixer.
        b: the other.
        fixed_sizes: sizes that some axes have.
        least: what those of all others have at least.
        but: derived sizes that may be less.
    """
    known, names = facts(a, b), sorted({d.axis.name for s in (a, b) for d in s.axes})
    free, derived = _order(known, fixed_sizes)
    bound = {*fixed_sizes, *free, *(f.name for f in derived)}
    start = {name: least for name in names if name not in bound} | dict(fixed_sizes)
    low = {fact.name: 1 if fact.name in but else least for fact in derived}
    options = [k for k in _options(known, fixed_sizes) if k >= least]
    for width in WIDTHS:
        if width ** len(free) > TRIED:
            return None
        chosen = [
            sizes
            for picked in product(options[:width], repeat=len(free))
            if (sizes := _followed(start, zip(free, picked, strict=True), derived, known, low))
            is not None
        ]
        if chosen or width >= len(options) or not free:
            return min(chosen, key=_weight, default=None)
    return None


def _weight(sizes: Mapping[str, int]) -> tuple[int, int]:
    return prod(sizes.values()), sum(sizes.values())


def _order(
    known: tuple[Fact, ...], fixed_sizes: Mapping[str, int]
) -> tuple[tuple[str, ...], tuple[Fact, ...]]:
    """The axes whose sizes have to be tried, and the facts that give the others, in order."""
    named = {name for fact in known for name in (fact.name, *fact.names)} - fixed_sizes.keys()
    free = sorted(named - {fact.name for fact in known})
    have, derived = {*fixed_sizes, *free}, list[Fact]()
    while named - have:
        following = next((f for f in known if f.name not in have and f.names <= have), None)
        if following is None:
            free.append(min(named - have))
            have.add(free[-1])
            continue
        derived.append(following)
        have.add(following.name)
    return tuple(free), tuple(derived)


def _options(known: tuple[Fact, ...], fixed_sizes: Mapping[str, int]) -> list[int]:
    """Sizes to try: small ones, times products of the numbers that facts and given sizes hold."""
    numbers = {k for fact in known for e in walk(fact.size) if isinstance(e, Num)
               for k in (abs(e.value.numerator), e.value.denominator)}  # fmt: skip
    numbers |= set(fixed_sizes.values())
    factors = {1}
    for number in sorted(numbers - {0, 1})[:NUMBERS]:
        factors |= {number * factor for factor in factors}
    return sorted({k * factor for factor in factors for k in range(1, SMALL + 1)})


def _followed(
    start: Mapping[str, int],
    picked: Iterable[tuple[str, int]],
    derived: tuple[Fact, ...],
    known: tuple[Fact, ...],
    low: Mapping[str, int],
) -> dict[str, int] | None:
    """All sizes that follow from some, None where a fact does not hold."""
    sizes = {**start, **dict(picked)}
    for fact in derived:
        value = size_value(fact.size, sizes)
        if value is None or value.denominator != 1 or value < low[fact.name]:
            return None
        sizes[fact.name] = int(value)
    return sizes if all(fact.holds(sizes) for fact in known) else None
