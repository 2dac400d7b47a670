"""Which published entry each entry of an emitted module is: a layout map run on numbers of entries.

That a row only moves entries is seen from what it does with their numbers, at the sizes of the
weights: nothing about the operations is believed. So is it that no published entry is forgotten and
none is in two rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dsfc.diagnostics.catalogue import LayoutProblem
from dsfc.diagnostics.report import Reporter, nearest
from dsfc.layouts.dims import solve
from dsfc.layouts.ir import Layout, Row
from dsfc.layouts.operations import ZERO, Function, MisfitError, Sizes, joined, shaped

Shape = tuple[int, ...]
Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Moved:
    """One row, with the places of all entries.

    Attributes:
        row: the row.
        shape: of the module's entry.
        addresses: for each number of it, in order, that of an entry of the sources, which are laid
            one behind the other; ZERO where it is 0.
        dropped: entries of the sources that have to be 0.
        copies: how often the row has each entry that it has.
    """

    row: Row
    shape: Shape
    addresses: Numbers
    dropped: Numbers
    copies: int

    @property
    def zeros(self) -> int:
        """How many entries are 0."""
        return int((self.addresses == ZERO).sum())


def sizes_of(layout: Layout, published: Mapping[str, Shape], known: Sizes) -> dict[str, int]:
    """Returns the sizes that shapes of published tensors tell.

    Args:
        layout: the map.
        published: shapes by name.
        known: sizes that are told otherwise.
    """
    equations = [
        (dim, size)
        for tensor in layout.published
        for dim, size in zip(tensor.shape, published.get(tensor.name, ()), strict=False)
    ]
    return solve([*equations, *((dim, known[n]) for n, dim in layout.axes.items() if n in known)],
                 known)  # fmt: skip


def names_of(layout: Layout) -> tuple[str, ...]:
    """Returns the names of the sizes that a map needs, each once."""
    dims = (dim for tensor in layout.published for dim in tensor.shape)
    return tuple(dict.fromkeys(n for dim in (*dims, *layout.axes.values()) for n in dim.names))


def addressed(layout: Layout, sizes: Sizes, entries: Mapping[str, Shape]) -> tuple[Moved, ...]:
    """Returns the rows of a map with the places of all entries.

    Args:
        layout: the map.
        sizes: of all its names.
        entries: shapes of the entries of the module's `state_dict`.

    Raises:
        DiagnosticError: E-LAYOUT: a row that is missing, is of no entry, does not fit, or has an
            entry that another has too; published entries that no row has.
    """
    reporter = Reporter()
    shapes = {t.name: tuple(d.value(sizes) for d in t.shape) for t in layout.published}
    moved = [m for row in layout.rows if (m := _moved(row, shapes, sizes, entries, reporter))]
    rows = {row.entry for row in layout.rows}
    for entry in entries:
        if entry not in rows:
            hint = f"write `[entry.{entry}]`, of the shape {shaped(entries[entry])}"
            reporter.add(LayoutProblem(layout.span, problem=f"no row gives {entry}", hint=hint))
    if len(moved) == len(rows):
        _demand_each_once(layout, shapes, moved, reporter)
    reporter.raise_errors()
    return tuple(moved)


def _moved(
    row: Row,
    shapes: Mapping[str, Shape],
    sizes: Sizes,
    entries: Mapping[str, Shape],
    reporter: Reporter,
) -> Moved | None:
    """One row on the numbers of its sources; None where it is wrong."""
    if row.entry not in entries:
        near = nearest(row.entry, entries)
        problem = f"the module has no entry {row.entry}"
        reporter.add(LayoutProblem(row.span, problem=problem, nearest=near))
        return None
    numbers, start = [], 0
    for source in row.sources:
        count = int(np.prod(shapes[source]))
        numbers.append(np.arange(start, start + count).reshape(shapes[source]))
        start += count
    dropped, at = [], row.span
    try:
        x = numbers[0] if row.along is None else joined(numbers, row.along)
        for step, place in zip(row.steps, row.places, strict=True):
            at = place
            if isinstance(step, Function):
                if (x == ZERO).any():
                    raise MisfitError("functions stand before what fills in zeros")
                continue
            dropped.append(step.dropped(x, sizes))
            x = step.apply(x, sizes)
    except MisfitError as e:
        reporter.add(LayoutProblem(at, problem=f"{row.entry}: {e}"))
        return None
    if x.shape != entries[row.entry]:
        problem = f"the row of {row.entry} gives {shaped(x.shape)}, and the module has "
        problem += shaped(entries[row.entry])
        reporter.add(LayoutProblem(row.span, problem=problem))
        return None
    left = np.concatenate([np.zeros(0, np.int64), *dropped])
    times = np.bincount(x[x != ZERO], minlength=start)
    return Moved(
        row,
        x.shape,
        np.ascontiguousarray(x).reshape(-1),
        left[left != ZERO],
        int(times.max(initial=1)),
    )


def _demand_each_once(
    layout: Layout, shapes: Mapping[str, Shape], moved: Sequence[Moved], reporter: Reporter
) -> None:
    """Every published entry is in one row, or in a tensor that the map names as unused."""
    owner = {name: np.full(int(np.prod(shape)), ZERO) for name, shape in shapes.items()}
    for number, m in enumerate(moved):
        for source, used in by_source(m, shapes):
            before = owner[source][used]
            if (before != ZERO).any():
                other = moved[int(before.max())].row.entry
                count = int((before != ZERO).sum())
                problem = f"{count} entries of {source} are in {other} and in {m.row.entry}"
                reporter.add(LayoutProblem(m.row.span, problem=problem))
            owner[source][used] = number
    spans = {tensor.name: tensor.span for tensor in layout.published}
    for source, rows in owner.items():
        count = int((rows == ZERO).sum())
        if count and source not in layout.unused:
            problem = f"{count} of {rows.size} entries of {source} are in no row"
            hint = "another row takes the rest"
            if count == rows.size:
                hint = f'what is left out on purpose is named: `unused = ["{source}"]`'
            reporter.add(LayoutProblem(spans[source], problem=problem, hint=hint))
        if count < rows.size and source in layout.unused:
            problem = f"{source} is named as unused, and a row has entries of it"
            reporter.add(LayoutProblem(spans[source], problem=problem))


def by_source(m: Moved, shapes: Mapping[str, Shape]) -> Iterator[tuple[str, Numbers]]:
    """Yields the sources of a row with the entries that it has or drops, each once, in order."""
    used = np.unique(np.concatenate([m.addresses[m.addresses != ZERO], m.dropped]))
    start = 0
    for source in m.row.sources:
        end = start + int(np.prod(shapes[source]))
        yield source, used[(start <= used) & (used < end)] - start
        start = end
