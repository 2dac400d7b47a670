"""Complex scans of which only real parts are read: Re Σ read · h, of real values.

Inside convolutions that part is taken at once: it is a real convolution.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from dsfc.expr.build import add, mul, prim, rewrite, walk
from dsfc.expr.tree import Add, Expr, Field, Mul, Now, Prim, Ref, Time
from dsfc.plan.flow import reads
from dsfc.plan.graph import Graph
from dsfc.plan.ir import Buffer, Kernel, Plan, Pointwise, Reverse
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


def is_real_to_real(plan: Plan, scan: Scan) -> bool:
    """Whether a scan is complex, of a real value, and only the real part of its output is needed.

    So it is where the output stands in `re`, in a sum too, or times what is real.
    """
    if scan.field is not Field.COMPLEX or scan.before or len(scan.columns) != 1:
        return False
    (column,) = scan.columns
    value = next((b for b in plan.arrays if b.name == column.value), None)
    if value is None or value.field is not Field.REAL:
        return False
    return _needs_no_imaginary_part(plan.kernels, column.output)


def _needs_no_imaginary_part(kernels: Sequence[Kernel], name: str) -> bool:
    """Whether no value depends on the imaginary part of a buffer."""
    for k in kernels:
        if isinstance(k, Pointwise):
            stripped = rewrite(k.value, lambda e: _without_imaginary_part(e, name))
            if any(isinstance(e, Ref) and e.name == name for e in walk(stripped)):
                return False
        elif isinstance(k, Reverse) and k.source == name:
            if not _needs_no_imaginary_part(kernels, k.output):
                return False
        elif any(read == name for read, _ in reads(k)):
            return False
    return True


def _without_imaginary_part(e: Expr, name: str) -> Expr | None:
    """A real part, with 1 in the place of the buffer where its real part is all that is needed."""
    if not isinstance(e, Prim) or e.name != "re":
        return None
    (value,) = e.args
    terms = value.args if isinstance(value, Add) else (value,)
    return prim("re", add(*(_real_multiple(t, name) for t in terms)))


def _real_multiple(e: Expr, name: str) -> Expr:
    """A term, with 1 in the place of the buffer, at the token itself, if the rest is real."""
    factors = e.args if isinstance(e, Mul) else (e,)
    own = [f for f in factors if f.field is not Field.REAL]
    if len(own) != 1 or not _is_read(own[0], name):
        return e
    return mul(*(f for f in factors if f is not own[0]))


_NOTHING = Ref("", frozenset(), Field.REAL, Time.TOKEN, Now(0))


def _without_cast(value: Expr, name: str) -> Expr:
    def rule(e: Expr) -> Expr | None:
        if not _is_real_part(e, name):
            return None
        (read,) = e.args  # type: ignore[attr-defined]  # a `Prim`, says the line above
        return Ref(name, read.over, Field.REAL, read.time, read.at)

    return rewrite(value, rule)
