"""What flows between the kernels of a plan: what each reads and writes."""

from __future__ import annotations

from collections.abc import Iterator

from dsfc.expr.build import walk
from dsfc.expr.tree import Now, Ref
from dsfc.plan.ir import Kernel, Pointwise, Reverse, RunningMax, Unit
from dsfc.plan.pairs_ir import AllPairs, Attention
from dsfc.plan.recurrence_ir import Recurrence
from dsfc.plan.scan_ir import Scan


class PlanError(Exception):
    """A plan that breaks an invariant: a fault of the planner, never of a spec."""


def written_by(kernel: Kernel) -> tuple[str, ...]:
    """Returns the buffers that a kernel writes."""
    if isinstance(kernel, Recurrence):
        return tuple(r.output for r in kernel.reads)
    return tuple(c.output for c in kernel.columns) if isinstance(kernel, Scan) else (kernel.output,)


def reads(kernel: Kernel) -> Iterator[tuple[str, int]]:
    """Yields (buffer, lag) for all that a kernel reads."""
    if isinstance(kernel, Reverse):
        yield kernel.source, 0
        return
    if isinstance(kernel, RunningMax):
        yield from ((name, 0) for name in (kernel.weight, kernel.decay) if name is not None)
        return
    if isinstance(kernel, Unit):
        return
    if isinstance(kernel, Attention):
        yield from ((name, 0) for name in (kernel.query, *kernel.kept))
        return
    if isinstance(kernel, AllPairs):
        yield from ((name, 0) for name in (*(x.buffer for x in kernel.leaves), kernel.present))
        return
    if isinstance(kernel, Recurrence):
        yield from ((name, 0) for name in kernel.coefficients)
        return
    if isinstance(kernel, Pointwise):
        for e in walk(kernel.value):
            if isinstance(e, Ref):
                yield e.name, e.at.lag if isinstance(e.at, Now) else 0
        return
    sides = (kernel.low_rank.left, kernel.low_rank.right) if kernel.low_rank is not None else ()
    strength = kernel.delta.strength if kernel.delta is not None else None
    dense = kernel.transition.matrix if kernel.transition is not None else None
    values = (c.value for c in kernel.columns)
    for name in (kernel.key, kernel.read, dense, strength, *sides, *values):
        if name is not None:
            yield name, 0
    for name in kernel.decay.leaves if kernel.decay is not None else ():
        yield name, 0
