"""States of all tokens of a chunk, one chunk after another."""

from __future__ import annotations

from dsfc.expr.build import mul
from dsfc.expr.tree import Expr
from dsfc.plan.scan_ir import Scan

from ..counts import Counts, tiles
from ..selective import SelectiveSkeleton
from .row import Layout, TorchForm


def _counts(scan: Scan, mode: str, keys: Expr, channels: Expr) -> Counts:
    return tiles(mode, mul(keys, channels))


ROW = TorchForm(Layout.TILE, SelectiveSkeleton, _counts, chunk=32)
