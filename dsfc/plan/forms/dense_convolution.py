"""Scans of a full matrix whose key and read are constants."""

from __future__ import annotations

from dsfc.plan.forms.row import FormRow
from dsfc.plan.forms.scans import RUN, ScanCheck, state
from dsfc.plan.scan_ir import Form, Group, Scan

ROW = FormRow(
    Form.DENSE_CONVOLUTION,
    Scan,
    RUN - {"scan"} | {"fft"},
    ScanCheck(keyed=True, decay=frozenset({Group.KEYS, Group.CHANNELS}), dense=True, fixed=True),
    state,
    frozenset({Group.KEYS, Group.CHANNELS}),
)
