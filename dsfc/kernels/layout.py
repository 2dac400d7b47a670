"""How kernels that go token by token divide the axes of a scan among programs."""

from __future__ import annotations

from dataclasses import dataclass

from dsfc.expr.tree import Axis
from dsfc.plan.scan_ir import Form, Scan


@dataclass(frozen=True)
class Layout:
    """The axes of a scan, as the kernel has them.

    Attributes:
        outer: axes that the grid enumerates.
        keys: axes of the state that a read sums over.
        block: the axis that is cut into blocks; None where the caller lays all axes in one row.
    """

    outer: tuple[Axis, ...]
    keys: tuple[Axis, ...]
    block: Axis | None


def layout(scan: Scan) -> Layout:
    """Returns how a kernel divides the axes of a scan."""
    if scan.form is Form.ELEMENTWISE:
        return Layout((), (), None)
    *outer, block = sorted((*scan.heads, *scan.channels), key=lambda a: (not a.heads, a))
    if scan.channels:
        *others, block = scan.channels
        outer = [*scan.heads, *others]
    return Layout(tuple(outer), scan.keys, block)
