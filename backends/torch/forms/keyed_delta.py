"""A triangular system in each chunk, of its keys alone, scaled by levels of blocks."""

from __future__ import annotations

from dsfc.expr.tree import Expr
from dsfc.plan.scan_ir import Scan

from ..counts import Counts, rewrites_keys
from ..delta import KeyedDeltaSkeleton
from .row import Layout, TorchForm


def _counts(scan: Scan, mode: str, keys: Expr, channels: Expr) -> Counts:
    return rewrites_keys(mode, keys, channels, keyed=True)


ROW = TorchForm(Layout.GROUPED, KeyedDeltaSkeleton, _counts, chunk=32, block=17)
