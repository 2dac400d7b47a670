"""Scans whose decay has head axes alone: a chunk is two products of matrices."""

from __future__ import annotations

from dsfc.plan.forms.row import FormRow
from dsfc.plan.forms.scans import RUN, ScanCheck, state
from dsfc.plan.scan_ir import Form, Scan

ROW = FormRow(
    Form.MATRIX,
    Scan,
    RUN | {"parallel"},
    ScanCheck(keyed=True),
    state,
    shares=True,
)
