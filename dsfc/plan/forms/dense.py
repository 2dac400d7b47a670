"""Scans whose state is mixed by a full matrix, the same at every token; out_i = h_i."""

from __future__ import annotations

from dsfc.plan.forms.row import FormRow
from dsfc.plan.forms.scans import RUN, ScanCheck, state
from dsfc.plan.scan_ir import Form, Group, Scan

ROW = FormRow(
    Form.DENSE,
    Scan,
    RUN - {"scan"},
    ScanCheck(keyed=False, decay=frozenset({Group.KEYS, Group.CHANNELS}), dense=True),
    state,
    frozenset({Group.KEYS, Group.CHANNELS}),
)
