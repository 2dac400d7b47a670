"""The sizes at which two systems are put side by side."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import combinations
from types import MappingProxyType

from dsfc.expr.build import walk
from dsfc.expr.tree import Fir, Iota, Num, Pow, Size
from dsfc.system.ir import System
from dsfc.system.known import fixed
from dsfc.trusted.claim import Claim, Invariant
from dsfc.trusted.comparable import LARGEST as LIMIT
from dsfc.trusted.generalize_inputs import expressions
from dsfc.trusted.invariant import unlifted
from dsfc.trusted.legal import facts, kept
from dsfc.trusted.size_induction import one_token
from dsfc.trusted.small_model_bound import small_model_bound, unproved
from dsfc.trusted.statement import WrittenClaim

LARGEST = 8
"""Sizes beyond this one make a proof long."""
SQUARE = 4
"""The least size above 1 that has a whole root."""
BEYOND = (3, 5)
"""Sizes of axes that a proof does not speak of at all sizes, where a witness is looked for too."""
NONE_GIVEN: Mapping[str, int] = MappingProxyType({})


def chosen(
    a: System, b: System, least: int, fixed_sizes: Mapping[str, int] = NONE_GIVEN
) -> tuple[tuple[str, int], ...]:
    """Returns small sizes of all axes that keep what both specs declare, `least` or more if can be.

    Raises:
        ValueError: no sizes do.
    """
    for more in dict.fromkeys((least, 1, 2)):  # the search has an end, at 1 sooner than at 2
        sizes = kept(a, b, fixed_sizes, more)
        if sizes is not None:
            return tuple(sorted(sizes.items()))
    held = [fact.text for fact in facts(a, b)] + [
        f"{name} = {k}" for name, k in fixed_sizes.items()
    ]
    raise ValueError(f"no sizes keep {' and '.join(held)}")


def check_given(a: System, b: System, fixed_sizes: Mapping[str, int]) -> None:
    """Checks sizes that a user gives.

    Raises:
        ValueError: there is no such axis, a number is no size, or what a spec declares excludes it.
    """
    if not fixed_sizes:
        return
    names = {d.axis.name for s in (a, b) for d in s.axes}
    for name, size in fixed_sizes.items():
        if name not in names:
            raise ValueError(f"neither of the two has an axis {name}")
        if not 1 <= size <= LIMIT:
            raise ValueError(f"{name} = {size} is not an integer from 1 to {LIMIT}")
    chosen(a, b, 1, fixed_sizes)


def small(a: System, b: System, least: int) -> tuple[tuple[str, int], ...]:
    """Returns sizes that a proof may start from, small whatever the specs declare.

    What is proved of all sizes is proved of those that keep what is declared.
    """
    sizes = chosen(a, b, least)
    if max((k for _, k in sizes), default=0) <= LARGEST:
        return sizes
    return tuple((name, least) for name, _ in sizes)


def modest(
    a: System, b: System, fixed_sizes: Mapping[str, int] = NONE_GIVEN
) -> tuple[tuple[str, int], ...]:
    """Returns sizes of 2 or more, but of a derived one that makes others large (r = d / 16).

    Raises:
        ValueError: no sizes keep what both specs declare.
    """
    sizes = chosen(a, b, 2, fixed_sizes)
    if max((k for _, k in sizes), default=0) <= LARGEST:
        return sizes
    candidates = (kept(a, b, fixed_sizes, 2, (fact.name,)) for fact in facts(a, b))
    others = [tuple(sorted(other.items())) for other in candidates if other is not None]
    return min((sizes, *others), key=lambda at: sum(k for _, k in at))


def declared(
    a: System, b: System, fixed_sizes: Mapping[str, int] = NONE_GIVEN
) -> tuple[tuple[tuple[str, int], ...], ...]:
    """Returns sizes of all axes: those given, else those that the specs declare as numbers.

    Where the two declare different numbers there are two. Where numbers of different axes do not go
    together (what is given may exclude them), each is taken by itself.
    """
    return tuple(dict.fromkeys(chosen(a, b, 2, pinned) for pinned in pinnings(a, b, fixed_sizes)))


def pinnings(
    a: System, b: System, fixed_sizes: Mapping[str, int] = NONE_GIVEN, but: Collection[str] = ()
) -> tuple[Mapping[str, int], ...]:
    """Returns the sizes that a question is about: those given, and those declared as numbers.

    Args:
        a: one system.
        b: the other.
        fixed_sizes: sizes that some axes have, whatever is declared.
        but: axes whose declared numbers are left out.

    Returns:
        One or more sets of sizes of some axes; see `declared`.
    """
    out: dict[tuple[tuple[str, int], ...], None] = {}
    for system in (a, b):
        other = b if system is a else a
        numbers = dict(_numbers(other)) | dict(_numbers(system))
        together = {name: k for name, k in numbers.items() if name not in {*fixed_sizes, *but}}
        for pinned in (together, *({name: k} for name, k in together.items())):
            at = {**fixed_sizes, **pinned}
            with suppress(ValueError):
                chosen(a, b, 2, at)
                out[tuple(sorted(at.items()))] = None
                break
    return tuple(map(dict, out)) or (dict(fixed_sizes),)


def examined(a: System, b: System, fixed_sizes: Mapping[str, int]) -> tuple[Mapping[str, int], ...]:
    """Returns the sizes at which conditions and cases are looked for, those of some axes.

    They are those of `pinnings`, of axes whose entries a formula tells apart (`iota`, the taps of a
    filter): there two entries say nothing of a third. Others, and those above `LARGEST`, stay small
    because a search takes long; a verdict names the declared sizes that it does not speak of.

    Args:
        a: one system.
        b: the other.
        fixed_sizes: sizes that the question is about.
    """
    told = {
        e.axis.name
        for s in (a, b)
        for value in expressions((s.definition, tuple(fixed(s).values())))
        for e in walk(value)
        if isinstance(e, Iota | Fir)
    }
    left = {name for s in (a, b) for name, k in _numbers(s) if k > LARGEST or name not in told}
    return pinnings(a, b, fixed_sizes, left)


def unexamined(
    a: System, b: System, sizes: Mapping[str, int], fixed_sizes: Mapping[str, int] = NONE_GIVEN
) -> tuple[tuple[str, int], ...]:
    """Returns the sizes that the specs declare as numbers, or that are given, and are others."""
    asked = dict(_numbers(b)) | dict(_numbers(a)) | dict(fixed_sizes)
    return tuple((name, k) for name, k in sorted(asked.items()) if sizes.get(name, k) != k)


def beyond(
    a: System, b: System, fixed: Collection[str], fixed_sizes: Mapping[str, int]
) -> Iterator[tuple[tuple[str, int], ...]]:
    """Yields larger sizes of some axes, where what both specs declare has such."""
    for larger in BEYOND:
        for names in (fixed, *([name] for name in fixed)):
            pinned = {name: larger for name in names if name not in fixed_sizes}
            sizes = kept(a, b, {**pinned, **fixed_sizes}, 1) if pinned else None
            if sizes is not None:
                yield tuple(sorted(sizes.items()))
                break


def distinguishing_sizes(
    a: System, b: System, counts: Mapping[str, int | str], fixed_sizes: Mapping[str, int]
) -> Iterator[tuple[tuple[str, int], ...]]:
    """Yields sizes that tell two axes apart, and those at which a term has indices enough.

    Args:
        a: one system.
        b: the other.
        counts: of each axis, see `dsfc.trusted.small_model_bound`.
        fixed_sizes: sizes that some axes have.
    """
    derived = {fact.name for fact in facts(a, b)}
    free = sorted(name for name in counts if name not in derived and name not in fixed_sizes)
    enough_indices = {n: c for n, c in counts.items() if isinstance(c, int) and n in free}
    for pinned in ({name: 2 + k for k, name in enumerate(free)}, enough_indices):
        sizes = kept(a, b, {**pinned, **fixed_sizes}, 1)
        if sizes is not None and max(sizes.values(), default=0) <= LARGEST:
            yield tuple(sorted(sizes.items()))


def _numbers(system: System) -> Iterator[tuple[str, int]]:
    """Sizes that a spec declares as numbers."""
    for d in system.axes:
        if d.default and isinstance(d.size, Num):
            yield d.axis.name, int(d.size.value)


def with_whole_roots(
    a: System, b: System, fixed_sizes: Mapping[str, int] = NONE_GIVEN
) -> tuple[tuple[str, int], ...]:
    """Returns small sizes of which those under a root in either system are squares, if can be.

    Numbers at a point are rational, or logarithms.

    Raises:
        ValueError: no sizes keep what both specs declare.
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
    squares = dict.fromkeys(rooted - fixed_sizes.keys(), SQUARE)
    try:
        return modest(a, b, {**squares, **fixed_sizes})
    except ValueError:
        return modest(a, b, fixed_sizes)


def around(
    a: System, b: System, fixed_sizes: Mapping[str, int] = NONE_GIVEN
) -> Iterator[tuple[tuple[str, int], ...]]:
    """Yields small sizes of all axes: the least, those with one or two axes of 2, and all of 2.

    Raises:
        ValueError: no sizes keep what both specs declare.
    """
    least = chosen(a, b, 1, fixed_sizes)
    yield least
    derived = {fact.name for fact in facts(a, b)}
    free = [name for name, _ in least if name not in derived and name not in fixed_sizes]
    seen = {least}
    for larger in (*combinations(free, 1), *combinations(free, 2)):
        larger_sizes = {n: k + (n in larger) for n, k in least if n in free}
        sizes = kept(a, b, {**larger_sizes, **fixed_sizes}, 1)
        at = tuple(sorted(sizes.items())) if sizes else least
        if at not in seen:
            seen.add(at)
            yield at
    twos = chosen(a, b, 2, fixed_sizes)
    if twos not in seen:
        yield twos


def enough(claim: Claim, entries: bool) -> tuple[Claim, ...]:
    """Returns a claim at sizes whose proof is one for all sizes of as many axes as can be, in turn.

    First at its own sizes, larger where they are below the counts, then at the counts, which has
    fewer entries. Axes that have no count keep their size, but where one token has: of these the
    rows say whether they are a family, see `dsfc.trusted.size_induction`.

    Args:
        claim: at what sizes it stands.
        entries: whether the proof writes linear maps out.
    """
    counts = small_model_bound(claim, entries)
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


def at_counts(claim: Claim, entries: bool) -> Claim:
    """Returns a claim for all sizes of as many axes as can be, others at their own sizes.

    An axis that cannot have as many entries keeps its own too: n = h / h has one, whatever h is.
    """
    counts = small_model_bound(claim, entries)
    sizes = tuple(
        (n, c if isinstance(c := counts[n], int) and _can_have(claim, n, c, k) else k)
        for n, k in claim.sizes
    )
    return for_all(replace(claim, sizes=sizes), entries)


def _can_have(claim: Claim, name: str, count: int, size: int) -> bool:
    """Whether an axis may have a size, where it has another one."""
    return count <= size or kept(claim.a, claim.b, {name: count}, 1) is not None


def for_all(claim: Claim, entries: bool) -> Claim:
    """Returns a claim for all sizes of those axes whose size is not below the count."""
    left = unproved(claim, entries)
    return replace(claim, every=tuple(name for name, _ in claim.sizes if name not in left))


def lifted(claim: Claim, proof: Invariant, statement: WrittenClaim) -> Claim:
    """Returns a claim for all sizes of those axes too along which the rows are a family."""
    left = unlifted(claim, proof, statement)
    return replace(claim, every=tuple(name for name, _ in claim.sizes if name not in left))
