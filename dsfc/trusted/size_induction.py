"""From rows at one size of an axis to rows at every size, where an update couples entries.

Fix an axis. An invariant (`dsfc.trusted.invariant`) is a *family* along it if

1. each row speaks of the indices of its pivot only: no entry of a state and no generator in it has
   another one. What a map or a norm contracts is in the name of a generator and no index of it;
2. indices renamed, each row is another row, up to a factor.

A family has rows at every size: those of one size, with their indices renamed. That they start at
0, are kept by one token and give the outputs are identities of sums with few indices in a term:

    the count    indices of the pivot, and those that one token's update, the first tokens', or the
                 output sums over

with each summed index carried, as in `small_model_bound`, by what stands in no pivot either.
At a size of the count or more they hold at every size; see docs/theory/proofs.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from dsfc.trusted.claim import CellMonomial, Claim
from dsfc.trusted.entries import Obstacle
from dsfc.trusted.generator_names import LONGEST_LAG, shifted
from dsfc.trusted.index_form import Form, NoCount
from dsfc.trusted.index_values import OTHERWISE, entries_of
from dsfc.trusted.one_step import OneStep, entries, nothing
from dsfc.trusted.polynomial import IMAGINARY, Polynomial
from dsfc.trusted.small_model_bound import along, carried, kinds_of
from dsfc.trusted.statement import WrittenClaim
from dsfc.trusted.symbols import Symbols

Terms = Mapping[CellMonomial, Polynomial]
"""A row: product of state entries → coefficient."""

_INDICES = re.compile(r"[\[<]([\d,;]*)[\]>]")
"""The indices that a name spells itself: what stands in its first brackets."""


def size_induction(
    claim: Claim,
    written_out: bool,
    statement: WrittenClaim,
    rows: Mapping[CellMonomial, Terms],
    name: str,
) -> None:
    """Checks that an invariant of one size of an axis is one of every size.

    Args:
        claim: the two systems, at that size.
        written_out: whether linear maps of tokens are; see `dsfc.trusted.claim.Invariant`.
        statement: the claim written out, of which the rows are an invariant.
        rows: pivot → row, in reduced echelon form.
        name: the axis.

    Raises:
        NoCount: it is not, or that is not seen; the text says why.
    """
    kinds = kinds_of(claim)
    kind, free = along(claim, kinds, name)
    size = dict(claim.sizes)[name]
    both = _Along(claim, written_out, kinds, kind)
    _outputs(both.steady())
    names = Names(statement.symbols, frozenset(n for n, k in kinds.items() if k == kind))
    for pivot, row in rows.items():
        own = names.of_cells(pivot)
        inside = [names.of_cells(cells) for cells in row]
        inside += [names.of(g) for p in row.values() for g in p.names]
        if any(not indices <= own for indices in inside):
            raise NoCount("a row of the proof holds indices of it that its pivot has not")
    for first in range(size - 1):
        swapped = {first: first + 1, first + 1: first}
        for pivot in rows:
            _check_renamed(pivot, rows, partial(names.renamed, to=swapped))
    count = _count(both, statement.window, free, rows, names)
    if size < count:
        raise NoCount(f"one token has {count} of its indices in a term, more than {size}")


def one_token(claim: Claim, written_out: bool, name: str) -> int | None:
    """Returns the size that a family of rows, each of one entry of each side, needs; or None."""
    kinds = kinds_of(claim)
    try:
        kind, free = along(claim, kinds, name)
        pair = _Along(claim, written_out, kinds, kind).steady()
        summed = [f.summed for f in _outputs(pair)]
        most = max(free + max(summed), 1)
        for side in pair:
            for block in side.system.blocks:
                own = sum(kinds.get(a.name) == kind for a in block.axes)
                most = max(most, own + side.after(block.state).summed)
    except NoCount:
        return None
    return most


class Names:
    """Indices along an axis in the names of generators and of entries of states."""

    def __init__(self, symbols: Symbols, axes: frozenset[str]) -> None:
        """Takes the axis and its copies."""
        self.symbols = symbols
        self.axes = axes

    def of_cells(self, cells: CellMonomial) -> frozenset[int]:
        """Returns the indices of a product of entries of states."""
        return frozenset[int]().union(*map(self.of, cells))

    def of(self, name: str) -> frozenset[int]:
        """Returns the indices of a generator: its own, and those of its arguments."""
        if name == IMAGINARY:
            return frozenset()
        known, _ = self._known(name)
        spelled = self.symbols.spelled[known]
        out = frozenset(k for axis, k in spelled.at if axis in self.axes)
        if not spelled.over & self.axes:
            for part in self._parts(known):
                out |= self.of(part)
        return out

    def arrays(self, name: str) -> Iterator[str]:
        """Yields the arrays and maps that a generator is made of, by name."""
        if name != IMAGINARY:
            known, _ = self._known(name)
            # `l2norm.n[0](…)` goes by `l2norm`, as a carrier.
            yield re.split(r"[\[<(.]", known, maxsplit=1)[0].lstrip("~")
            for part in self._parts(known):
                yield from self.arrays(part)

    def renamed(self, name: str, to: Mapping[int, int]) -> str:
        """Returns the generator that has other indices in the place of some."""
        if name == IMAGINARY:
            return name
        known, later = self._known(name)
        spelled = self.symbols.spelled[known]
        head, args = self.symbols.defined.get(known, (known, None))
        if spelled.at:
            head = self._respelled(head, spelled.at, to)
        if args is None:
            return shifted(head, -later)
        if not spelled.over & self.axes:
            args = tuple(q.renamed(lambda g: self.renamed(g, to)) for q in args)
        return shifted(f"{head}({','.join(q.text for q in args)})", -later)

    def _respelled(self, head: str, at: tuple[tuple[str, int], ...], to: Mapping[int, int]) -> str:
        indices = iter([to.get(k, k) if axis in self.axes else k for axis, k in at])
        spelled = _INDICES.search(head)
        if spelled is None:
            raise NoCount(f"`{head}` does not spell its indices")
        inside = re.sub(r"\d+", lambda _: str(next(indices)), spelled[1])
        return head[: spelled.start(1)] + inside + head[spelled.end(1) :]

    def _parts(self, known: str) -> Iterator[str]:
        _, args = self.symbols.defined.get(known, ("", ()))
        for q in args:
            yield from q.names

    def _known(self, name: str) -> tuple[str, int]:
        """The generator of the systems that this is, some tokens later."""
        for later in range(LONGEST_LAG):
            try:
                earlier = shifted(name, later)
            except Obstacle:
                break
            if earlier in self.symbols.spelled:
                return earlier, later
        raise NoCount(f"`{name}` stands in a row of the proof and in neither of the two")


def _check_renamed(
    of: CellMonomial, rows: Mapping[CellMonomial, Terms], new: Callable[[str], str]
) -> None:
    """Checks that the row of a pivot, its indices renamed, is another, up to a factor."""

    def product(cells: CellMonomial) -> CellMonomial:
        return tuple(sorted(map(new, cells)))

    moved = {product(cells): p.renamed(new) for cells, p in rows[of].items()}
    pivot = product(of)
    other = rows.get(pivot)
    if other is None or other.keys() != moved.keys():
        raise NoCount("a row of the proof is none for other indices")
    for cells, coefficient in moved.items():
        if coefficient * other[pivot] != other[cells] * moved[pivot]:
            raise NoCount("a row of the proof is none for other indices")


@dataclass(frozen=True, slots=True)
class _Along:
    """Both systems along one axis."""

    claim: Claim
    written_out: bool
    kinds: Mapping[str, str]
    kind: str

    def pair_of(self, a: Mapping[str, Form], b: Mapping[str, Form]) -> _Pair:
        """Both at one token, given the states before it."""
        first, second = (
            OneStep(self.claim, k, self.written_out, self.kinds, self.kind, old)
            for k, old in enumerate((a, b))
        )
        return first, second

    def first(self) -> _Pair:
        """Both at the first token."""
        return self.pair_of(nothing(self.claim.a), nothing(self.claim.b))

    def steady(self) -> _Pair:
        """Both at a token, the states before it being generators."""
        return self.pair_of(entries(self.claim.a), entries(self.claim.b))


_Pair = tuple[OneStep, OneStep]


def _outputs(pair: _Pair) -> list[Form]:
    out = [side.output() for side in pair]
    if any(f.divided for f in out):
        raise NoCount("the output divides by states")
    return out


def _count(
    both: _Along,
    window: int,
    free: int,
    rows: Mapping[CellMonomial, Terms],
    names: Names,
) -> int:
    """The indices of one term, at most, of what is checked of the rows and of the outputs."""
    steady, pairs = both.steady(), [both.first()]
    while len(pairs) < window:
        pairs.append(both.pair_of(*map(_after, pairs[-1])))
    most = 1
    for pair in (*pairs, steady):
        most = max(most, free + max(f.summed for f in _outputs(pair)))
    for pair in (pairs[-1], steady):
        for pivot, row in rows.items():
            summed = max(sum(_cell(pair, cell).summed for cell in cells) for cells in row)
            most = max(most, len(names.of_cells(pivot)) + summed)
    sides = [side for pair in (*pairs, steady) for side in pair]
    divided = {
        array for pivot, row in rows.items() for g in row[pivot].names for array in names.arrays(g)
    }
    pivots = {way: {OTHERWISE} for array in divided for way in (array, entries_of(array))}
    carried(sides, [*(side.ways for side in sides), pivots])
    return most


def _after(side: OneStep) -> dict[str, Form]:
    return {b.state: side.after(b.state) for b in side.system.blocks}


def _cell(pair: _Pair, cell: str) -> Form:
    """The terms of an entry of a state after the token, by its name: `$A.S[…]`."""
    label, _, state = cell.lstrip("~").partition("[")[0].partition(".")
    return pair[label.endswith("B")].after(state)
