"""A triangular system in each chunk."""

from __future__ import annotations

from dsfc.expr.tree import Expr
from dsfc.plan.scan_ir import Scan

from ..counts import Counts, rewrites
from ..low_rank import LowRankSkeleton
from .row import Layout, TorchForm


def _counts(scan: Scan, mode: str, keys: Expr, channels: Expr) -> Counts:
    return rewrites(mode, keys, channels, keyed=False)


ROW = TorchForm(Layout.GROUPED, LowRankSkeleton, _counts, chunk=64, block=17)
