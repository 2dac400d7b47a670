"""Powers of a full matrix by doubling."""

from __future__ import annotations

from dsfc.expr.tree import Expr
from dsfc.plan.scan_ir import Scan

from ..counts import Counts, mixed
from ..dense import DenseSkeleton
from .row import Layout, TorchForm


def _counts(scan: Scan, mode: str, keys: Expr, channels: Expr) -> Counts:
    return mixed(mode, channels)


ROW = TorchForm(Layout.MIXED, DenseSkeleton, _counts, chunk=64)
