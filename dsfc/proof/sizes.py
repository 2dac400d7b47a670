"""The sizes at which two systems are put side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product

from dsfc.check_proof.claim import Claim, Invariant
from dsfc.check_proof.cutoff import cutoff, unproved
from dsfc.check_proof.family import one_token
from dsfc.check_proof.free import expressions
from dsfc.check_proof.invariant import unlifted
from dsfc.check_proof.statement import Statement
from dsfc.primitives.build import walk
from dsfc.primitives.declarations import Dimension
from dsfc.primitives.expr import Add, Div, Expr, Mul, Num, Pow, Size
from dsfc.system.ir import System

LARGEST = 8
"""Bound on the sizes tried."""
SQUARE = 4
"""The least size above 1 that has a whole root."""


def chosen(a: System, b: System, least: int) -> tuple[tuple[str, int], ...]:
    """Returns small sizes of all axes, at least `least`, that keep the derivations of the specs.

    Where none do (a size that is a sixteenth of another), derived sizes that would not be integers
    are `least`; the language lets every derived size be overridden.
    """
    dimensions = {d.axis.name: d for d in (*b.axes, *a.axes)}
    free = [n for n, d in dimensions.items() if (d.size is None or d.default) and not _copy(d)]
    best: tuple[int, int, dict[str, int]] | None = None
    for picked in _picks(len(free), least):
        sizes, broken = _completed(dimensions, dict(zip(free, picked, strict=True)), least)
        rank = (broken, sum(sizes.values()), sizes)
        if best is None or rank[:2] < best[:2]:
            best = rank
    assert best is not None
    return tuple(sorted(best[2].items()))


def with_whole_roots(
    a: System, b: System, sizes: tuple[tuple[str, int], ...]
) -> tuple[tuple[str, int], ...]:
    """Returns sizes of which those under a root in either system are squares.

    Numbers at a point are rational, or logarithms.
    """
    read = [(s.streams, s.stages, s.outputs) for s in (a, b)]
    powers = (p for e in expressions(read) for p in walk(e) if isinstance(p, Pow))
    rooted = {
        p.base.axis.name
        for p in powers
        if isinstance(p.base, Size)
        and isinstance(p.exponent, Num)
        and p.exponent.value.denominator != 1
    }
    return tuple((name, SQUARE if name in rooted else size) for name, size in sizes)


def around(a: System, b: System) -> Iterator[tuple[tuple[str, int], ...]]:
    """Yields small sizes of all axes: the least, those with one or two axes of 2, and all of 2."""
    least = chosen(a, b, 1)
    yield least
    dimensions = {d.axis.name: d for d in (*b.axes, *a.axes)}
    free = [n for n, d in dimensions.items() if (d.size is None or d.default) and not _copy(d)]
    seen = {least}
    for larger in (*combinations(free, 1), *combinations(free, 2)):
        sizes, broken = _completed(dimensions, {n: 1 + (n in larger) for n in free}, 1)
        at = tuple(sorted(sizes.items()))
        if not broken and at not in seen:
            seen.add(at)
            yield at
    twos = chosen(a, b, 2)
    if twos not in seen:
        yield twos


def enough(claim: Claim, entries: bool) -> tuple[Claim, ...]:
    """Returns a claim at sizes whose proof is one for all sizes of as many axes as can be, in turn.

    First at its own sizes, larger where they are below the counts, then at the counts, which has
    fewer entries. Axes that have no count keep their size, but where one token has: of these the
    rows say whether they are a family, see `dsfc.check_proof.family`.

    Args:
        claim: at what sizes it stands.
        entries: whether the proof writes linear maps out.
    """
    counts = cutoff(claim, entries)
    coupled = {
        name: one_token(claim, entries, name) or size
        for name, size in claim.sizes
        if isinstance(counts[name], str)
    }
    wide, larger, least = [], [], []
    for name, size in claim.sizes:
        count = counts[name]
        larger.append((name, max(size, count) if isinstance(count, int) else size))
        least.append((name, count if isinstance(count, int) else size))
        wide.append((name, max(larger[-1][1], coupled.get(name, 1))))
    out = dict.fromkeys((tuple(wide), tuple(larger), tuple(least)))
    return tuple(for_all(replace(claim, sizes=sizes), entries) for sizes in out)


def for_all(claim: Claim, entries: bool) -> Claim:
    """Returns a claim for all sizes of those axes whose size is not below the count."""
    left = unproved(claim, entries)
    return replace(claim, every=tuple(name for name, _ in claim.sizes if name not in left))


def lifted(claim: Claim, proof: Invariant, statement: Statement) -> Claim:
    """Returns a claim for all sizes of those axes too along which the rows are a family."""
    left = unlifted(claim, proof, statement)
    return replace(claim, every=tuple(name for name, _ in claim.sizes if name not in left))


def _picks(count: int, least: int) -> Iterator[tuple[int, ...]]:
    """Sizes of the free axes, the first of which is a width that others divide."""
    widths = [k for k in (least, 2 * least, 4 * least) if k <= LARGEST]
    return product(widths, *[(least,)] * (count - 1)) if count else iter([()])


def _copy(d: Dimension) -> bool:
    return d.axis.copy_of is not None


def _completed(
    dimensions: Mapping[str, Dimension], sizes: dict[str, int], least: int
) -> tuple[dict[str, int], int]:
    """All sizes, and how many derived ones had to be overridden."""
    broken = 0
    for name, d in dimensions.items():
        if name in sizes or d.size is None or _copy(d):
            continue
        value = _value(d.size, sizes)
        if value is None or value.denominator != 1 or value < least:
            broken, value = broken + 1, Fraction(least)
        sizes[name] = int(value)
    for name, d in dimensions.items():
        if d.axis.copy_of is not None:
            sizes[name] = sizes[d.axis.copy_of]
    return sizes, broken


def _value(e: Expr, sizes: Mapping[str, int]) -> Fraction | None:
    match e:
        case Num(value):
            return value
        case Size(axis):
            return Fraction(sizes[axis.name]) if axis.name in sizes else None
        case Add(args) | Mul(args):
            out = Fraction(0) if isinstance(e, Add) else Fraction(1)
            for a in args:
                x = _value(a, sizes)
                if x is None:
                    return None
                out = out + x if isinstance(e, Add) else out * x
            return out
        case Div(num, den):
            top, bottom = _value(num, sizes), _value(den, sizes)
            return top / bottom if top is not None and bottom else None
        case Pow(base, Num(exponent)) if exponent.denominator == 1:
            x = _value(base, sizes)
            return x ** int(exponent) if x else None
    return None
