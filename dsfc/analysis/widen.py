"""A System run on many vectors at once: an axis more for some names and all that they reach.

A linear map is known by what it makes of unit vectors. They stand along the axis `BASIS`, and the
System is run once for all of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from dsfc.expr.build import rewrite
from dsfc.expr.tree import Axis, Expr, Ref
from dsfc.matrices.symbolic import BASIS
from dsfc.system.ir import Block, ReadOut, System
from dsfc.system.traverse import (
    held,
    map_expressions,
    names_in,
    terms,
    value_expressions,
)

__all__ = ["BASIS", "widened"]


def widened(system: System, names: Iterable[str]) -> System:
    """Returns the System whose named inputs, states and all that reads them have the axis `BASIS`.

    Args:
        system: the System; no shape of its axes changes.
        names: inputs, and states whose initial values have the axis.
    """
    wide = _reached(system, set(names))

    def ref(e: Expr) -> Expr | None:
        if isinstance(e, Ref) and e.name in wide and BASIS not in e.over:
            return replace(e, over=e.over | {BASIS})
        return None

    changed = map_expressions(system, lambda e: rewrite(e, ref))
    return replace(
        changed,
        inputs=tuple(
            replace(t, axes=_with(t.axes)) if t.name in wide else t for t in changed.inputs
        ),
        streams=tuple(
            replace(s, axes=_with(s.axes)) if s.name in wide else s for s in changed.streams
        ),
        stages=tuple(
            replace(s, blocks=tuple(replace(b, axes=_with(b.axes)) if b.state in wide else b
                                    for b in s.blocks))
            for s in changed.stages
        ),
        outputs=tuple(
            replace(o, axes=_with(o.axes)) if _reads(o.value, wide) else o
            for o in changed.outputs
        ),
    )  # fmt: skip


def _with(axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
    return (*axes, BASIS)


def _reached(system: System, wide: set[str]) -> set[str]:
    """The names that have the axis: those given and all that reads one of them."""
    before = -1
    while len(wide) != before:
        before = len(wide)
        wide |= {s.name for s in system.streams if _reads(s.value, wide)}
        for stage in system.stages:
            wide |= {b.state for b in stage.blocks if _block_reads(b, wide)}
    return wide


def _block_reads(block: Block, wide: set[str]) -> bool:
    sources = {t.source for f in block.chain for t in f.terms}
    return bool((sources | names_in(held(block.chain))) & wide)


def _reads(value: Expr | ReadOut, wide: set[str]) -> bool:
    sources = set() if isinstance(value, Expr) else {t.source for t in terms(value)}
    return bool((sources | names_in(value_expressions(value))) & wide)
