"""Products of matrices inside a chunk, states between chunks."""

from __future__ import annotations

from dsfc.expr.tree import Expr
from dsfc.plan.scan_ir import Scan

from ..counts import Counts, pairs_of_chunks
from ..matrix import MatrixSkeleton
from .row import Layout, TorchForm


def _counts(scan: Scan, mode: str, keys: Expr, channels: Expr) -> Counts:
    return pairs_of_chunks(mode, keys, channels, scan.decay is not None, keyed=False)


ROW = TorchForm(Layout.GROUPED, MatrixSkeleton, _counts, chunk=64, block=17)
