"""A triangular system in each chunk, of its keys alone."""

from __future__ import annotations

from dsfc.expr.tree import Expr
from dsfc.plan.scan_ir import Scan

from ..counts import Counts, rewrites_keys
from ..delta import DeltaSkeleton
from .row import Layout, TorchForm


def _counts(scan: Scan, mode: str, keys: Expr, channels: Expr) -> Counts:
    return rewrites_keys(mode, keys, channels, keyed=False)


ROW = TorchForm(Layout.GROUPED, DeltaSkeleton, _counts, chunk=64, block=17)
