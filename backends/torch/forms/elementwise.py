"""All chunks side by side, twice over each; sums where nothing decays."""

from __future__ import annotations

from dsfc.expr.build import mul
from dsfc.expr.tree import Expr
from dsfc.plan.scan_ir import Scan

from ..counts import Counts, elements
from ..skeletons import ElementwiseSkeleton
from .row import Layout, TorchForm


def _counts(scan: Scan, mode: str, keys: Expr, channels: Expr) -> Counts:
    return elements(mode, mul(keys, channels), scan.decay is not None)


ROW = TorchForm(Layout.ENTRIES, ElementwiseSkeleton, _counts, chunk=64, block=16)
