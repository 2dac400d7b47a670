"""Scans whose decay has head axes alone, and whose tokens rewrite one direction of the state."""

from __future__ import annotations

from dsfc.plan.forms.row import FormRow
from dsfc.plan.forms.scans import RUN, ScanCheck, state
from dsfc.plan.scan_ir import Form, Scan

ROW = FormRow(
    Form.LOW_RANK,
    Scan,
    RUN,
    ScanCheck(keyed=True, low_rank=True),
    state,
    shares=True,
)
