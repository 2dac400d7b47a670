"""One convolution of all outputs."""

from __future__ import annotations

from dsfc.expr.tree import Expr
from dsfc.plan.scan_ir import Scan

from ..convolution import ConvolutionSkeleton
from ..counts import Counts, convolution
from .row import Layout, TorchForm


def _counts(scan: Scan, mode: str, keys: Expr, channels: Expr) -> Counts:
    return convolution(mode, keys, scan.field, scan.real)


ROW = TorchForm(Layout.RESPONSES, ConvolutionSkeleton, _counts, chunk=128, block=20)
