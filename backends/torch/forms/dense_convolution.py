"""Responses to powers of a full matrix."""

from __future__ import annotations

from dsfc.expr.tree import Expr
from dsfc.plan.scan_ir import Scan

from ..counts import Counts, responses
from ..dense import DenseSkeleton
from .row import Layout, TorchForm


def _counts(scan: Scan, mode: str, keys: Expr, channels: Expr) -> Counts:
    return responses(mode, keys)


ROW = TorchForm(Layout.RESPONSES, DenseSkeleton, _counts, chunk=64)
