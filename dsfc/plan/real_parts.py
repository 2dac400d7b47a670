"""Takes real parts inside convolutions: Re Σ read · h, of real values, is a real convolution."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from dsfc.expr.build import rewrite, walk
from dsfc.expr.tree import Expr, Field, Now, Prim, Ref, Time
from dsfc.plan.flow import reads
from dsfc.plan.graph import Graph
from dsfc.plan.ir import Buffer, Kernel, Pointwise, Reverse
from dsfc.plan.scan_ir import Form, Scan


def take_real_parts(graph: Graph) -> None:
    """Lets each convolution of real values, of which only real parts are read, return those."""
    for at, kernel in enumerate(graph.kernels):
        if not isinstance(kernel, Scan) or kernel.form is not Form.CONVOLUTION:
            continue
        (column,) = kernel.columns
        value = None if column.value is None else graph.arrays[column.value]
        driven = Field.REAL if value is None else value.field
        if kernel.field is Field.REAL or driven is Field.COMPLEX:
            continue
        if not only_real_parts(graph.kernels, column.output):
            continue
        graph.kernels[at] = dataclasses.replace(kernel, real=True)
        for name in (column.output, *_reversed(graph, column.output)):
            old = graph.arrays[name]
            graph.arrays[name] = Buffer(name, old.axes, Field.REAL, old.role, old.provenance)
            for k, other in enumerate(graph.kernels):
                if isinstance(other, Pointwise):
                    graph.kernels[k] = Pointwise(other.output, _without_cast(other.value, name))


def _reversed(graph: Graph, name: str) -> list[str]:
    """Buffers that are this one, reversed."""
    return [k.output for k in graph.kernels if isinstance(k, Reverse) and k.source == name]


def _is_read(e: Expr, name: str) -> bool:
    return isinstance(e, Ref) and e.name == name and e.at == Now(0)


def _is_real_part(e: Expr, name: str) -> bool:
    return isinstance(e, Prim) and e.name == "re" and _is_read(e.args[0], name)


def only_real_parts(kernels: Sequence[Kernel], name: str) -> bool:
    """Whether every read of a buffer stands in `re`, at the token itself."""
    for k in kernels:
        if isinstance(k, Reverse):
            if k.source == name and not only_real_parts(kernels, k.output):
                return False
            continue
        if not isinstance(k, Pointwise):
            if any(read == name for read, _ in reads(k)):
                return False
            continue
        stripped = rewrite(k.value, lambda e: _NOTHING if _is_real_part(e, name) else None)
        if any(isinstance(e, Ref) and e.name == name for e in walk(stripped)):
            return False
    return True


_NOTHING = Ref("", frozenset(), Field.REAL, Time.TOKEN, Now(0))


def _without_cast(value: Expr, name: str) -> Expr:
    def rule(e: Expr) -> Expr | None:
        if not _is_real_part(e, name):
            return None
        (read,) = e.args  # type: ignore[attr-defined]  # a `Prim`, says the line above
        return Ref(name, read.over, Field.REAL, read.time, read.at)

    return rewrite(value, rule)
