"""Statements that one nest of loops computes together: neighbours over the same axes.

A *run* is a row of statements, each of which computes entry by entry over the same axes: functions
of entries, reductions along one of the axes, stores. Inside a run a value is a local variable; only
what statements outside read has memory. `reordered` makes the runs of a body long: it moves
statements, and changes none, so that the interpreter gives the same numbers before and after.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from dsfc.kernel_ir.ir import (
    Access,
    Along,
    Axis,
    Compare,
    Kernel,
    Let,
    Load,
    Loop,
    Map,
    Reduce,
    Rename,
    Statement,
    Store,
)
from dsfc.kernel_ir.uses import uses

from .schedule import Schedule


@dataclass(frozen=True)
class Run:
    """Statements that one nest of loops computes.

    Attributes:
        axes: of the loops.
        statements: in order.
    """

    axes: frozenset[Axis]
    statements: tuple[Let | Store, ...]

    def holds(self, s: Statement) -> bool:
        """Returns whether a statement, this very one, is in the run."""
        return any(s is x for x in self.statements)


def loop_axes(s: Statement, schedule: Schedule) -> frozenset[Axis] | None:
    """Returns the axes of the loops that compute a statement entry by entry; None for others."""
    match s:
        case Let(name=name) if name in schedule.inlined or name in schedule.deferred:
            return None
        case Let(name=name, operation=Map() | Compare()) if name not in schedule.additions:
            axes = schedule.types[name].axes
        case Let(operation=Reduce(operand=x)):
            axes = schedule.types[x].axes
        case Store(at=at):
            axes = tuple(p.axis for p in at if isinstance(p, Along))
        case _:
            return None
    return frozenset(axes) or None


def runs(body: Iterable[Statement], schedule: Schedule) -> Iterator[Run | Statement]:
    """Yields the statements of a body in order, those of a run together; none that is inlined."""
    run: list[Statement] = []
    for s in body:
        if _is_elsewhere(s, schedule):
            continue
        if run and _ends(s, run, schedule):
            yield _run(run, schedule)
            run = []
        if loop_axes(s, schedule) is None:
            yield s
        else:
            run.append(s)
    if run:
        yield _run(run, schedule)


def _run(statements: list[Statement], schedule: Schedule) -> Run:
    axes = loop_axes(statements[0], schedule)
    assert axes is not None
    return Run(axes, tuple(s for s in statements if isinstance(s, Let | Store)))


def _is_elsewhere(s: Statement, schedule: Schedule) -> bool:
    """Whether a statement is printed where its value is used."""
    return isinstance(s, Let) and (s.name in schedule.inlined or s.name in schedule.deferred)


def _is_name(s: Statement) -> bool:
    return isinstance(s, Let) and isinstance(s.operation, Rename)


def _joins(s: Statement, run: list[Statement], schedule: Schedule) -> bool:
    """Whether a statement can be computed in the loops of a run."""
    if loop_axes(s, schedule) != loop_axes(run[0], schedule):
        return False
    # The result of a reduction exists only behind its loops.
    reduced = {x.name for x in run if isinstance(x, Let) and isinstance(x.operation, Reduce)}
    if not reduced.isdisjoint(schedule.reads(s)):
        return False
    # A store may overwrite an entry that a later iteration reads.
    stored = {x.argument for x in (*run, s) if isinstance(x, Store)}
    lying = (schedule.lying.get(n) for x in (*run, s) for n in schedule.reads(x))
    return stored.isdisjoint(lying)


def _ends(s: Statement, run: list[Statement], schedule: Schedule) -> bool:
    """Whether a run is over before a statement."""
    if _is_name(s):
        return not {x.name for x in run if isinstance(x, Let)}.isdisjoint(schedule.reads(s))
    return not _joins(s, run, schedule)


def reordered(kernel: Kernel, schedule: Schedule) -> Kernel:
    """Returns the kernel with the statements of each body in an order that makes runs long."""
    scratch = frozenset(a.name for a in kernel.arguments if a.access is Access.SCRATCH)
    return replace(kernel, body=_reordered(kernel.body, schedule, scratch))


def _reordered(
    body: tuple[Statement, ...], schedule: Schedule, scratch: frozenset[str]
) -> tuple[Statement, ...]:
    """The statements in an order of their own.

    What needs no loop stands where it first can. Of the others the next is one that joins the run
    so far. If none does it is the first, or one of fewer axes that its run will wait for.
    """
    inside = [
        replace(s, body=_reordered(s.body, schedule, scratch)) if isinstance(s, Loop) else s
        for s in body
    ]
    waits = list(_waits(inside, schedule, scratch))
    axes = [loop_axes(s, schedule) for s in inside]
    needs = list(_needs(inside, schedule))
    left, run, out = dict.fromkeys(range(len(inside))), list[Statement](), list[Statement]()

    def rank(k: int) -> tuple[int, int]:
        s = inside[k]
        if _is_elsewhere(s, schedule):
            return 0, k
        if run:
            return (1 if not _ends(s, run, schedule) else 2), k
        return (1 if _is_name(s) or _is_load(s) else 2), k

    while left:
        ready = [k for k in left if waits[k].isdisjoint(left)]
        first, k = min(map(rank, ready))
        if first == 2 and run:
            run = []
            continue
        of = axes[k]
        if first == 2 and of is not None:
            waiting = set().union(*(needs[j] for j in left if j not in ready and axes[j] == of))
            few = (j for j in ready if j in waiting and (axes[j] or of) < of)
            k = next(few, k)
        s = inside[k]
        if axes[k] is not None:
            run = [*run, s]
        elif not _is_elsewhere(s, schedule) and not _is_name(s):
            run = []
        out.append(s)
        del left[k]
    return tuple(out)


def _is_load(s: Statement) -> bool:
    return isinstance(s, Let) and isinstance(s.operation, Load)


def _needs(body: list[Statement], schedule: Schedule) -> Iterator[set[int]]:
    """Yields the statements of a body whose values in memory each statement reads."""
    bound = {name: k for k, s in enumerate(body) for name in _bound(s)}
    for s in body:
        yield {bound[x] for x in schedule.reads(s) if x in bound}


def _waits(
    body: list[Statement], schedule: Schedule, scratch: frozenset[str]
) -> Iterator[set[int]]:
    """Yields the statements that each statement of a body must stand behind."""
    bound: dict[str, int] = {}
    accesses = [dict(_accesses(s, schedule, scratch)) for s in body]
    for k, s in enumerate(body):
        waits, mine = {bound[x] for x in uses((s,)) if x in bound}, accesses[k]
        # Loads may change places with each other, stores with neither.
        for before, theirs in enumerate(accesses[:k]):
            if any(mine[a] or theirs[a] for a in mine.keys() & theirs.keys()):
                waits.add(before)
        yield waits
        for name in _bound(s):
            bound[name] = k


def _bound(s: Statement) -> Iterator[str]:
    if isinstance(s, Let):
        yield s.name
    elif isinstance(s, Loop):
        yield from (c.last for c in s.carries)


def _accesses(
    s: Statement, schedule: Schedule, scratch: frozenset[str]
) -> Iterator[tuple[str, bool]]:
    """Yields scratch arguments that a statement uses, and whether it stores to them."""
    stored = {x.argument for x in _flat(s) if isinstance(x, Store)} & scratch
    loads = (x.operation for x in _flat(s) if isinstance(x, Let))
    loaded = {x.argument for x in loads if isinstance(x, Load)} & scratch
    # A tile that is read where it lies is loaded where it is used.
    loaded |= {schedule.lying[n] for n in schedule.reads(s) if n in schedule.lying}
    yield from dict.fromkeys(sorted(loaded | stored), False).items()
    yield from dict.fromkeys(sorted(stored), True).items()


def _flat(s: Statement) -> Iterator[Statement]:
    yield s
    for inner in s.body if isinstance(s, Loop) else ():
        yield from _flat(inner)
