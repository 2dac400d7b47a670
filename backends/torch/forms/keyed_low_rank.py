"""A triangular system in each chunk, of keys scaled by levels of blocks."""

from __future__ import annotations

from dsfc.expr.tree import Expr
from dsfc.plan.scan_ir import Scan

from ..counts import Counts, rewrites
from ..low_rank import KeyedLowRankSkeleton
from .row import Layout, TorchForm


def _counts(scan: Scan, mode: str, keys: Expr, channels: Expr) -> Counts:
    return rewrites(mode, keys, channels, keyed=True)


ROW = TorchForm(Layout.GROUPED, KeyedLowRankSkeleton, _counts, chunk=32, block=17)
