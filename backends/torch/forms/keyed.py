"""Products of matrices inside a chunk, of keys scaled by levels of blocks."""

from __future__ import annotations

from dsfc.expr.tree import Expr
from dsfc.plan.scan_ir import Scan

from ..counts import Counts, pairs_of_chunks
from ..keyed import KeyedSkeleton
from .row import Layout, TorchForm


def _counts(scan: Scan, mode: str, keys: Expr, channels: Expr) -> Counts:
    return pairs_of_chunks(mode, keys, channels, scan.decay is not None, keyed=True)


ROW = TorchForm(Layout.GROUPED, KeyedSkeleton, _counts, chunk=64, block=19)
