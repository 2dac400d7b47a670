"""Sizes that counts are over besides those of axes: of the batch, the sequence and a chunk."""

from __future__ import annotations

from dsfc.expr.build import mul
from dsfc.expr.tree import Axis, Expr, Param, Size

BATCH = Param("batch", frozenset())
CHUNK = Param("chunk", frozenset())
LENGTH = Param("length", frozenset())


def size(axes: tuple[Axis, ...]) -> Expr:
    """Returns how many entries an array over axes has."""
    return mul(*(Size(a) for a in axes))
