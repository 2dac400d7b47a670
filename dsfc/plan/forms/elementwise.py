"""Scans without keys: out_i = h_i."""

from __future__ import annotations

from dsfc.plan.forms.row import FormRow
from dsfc.plan.forms.scans import RUN, ScanCheck, state
from dsfc.plan.scan_ir import Form, Group, Scan

_DECAY = frozenset({Group.KEYS, Group.CHANNELS})

ROW = FormRow(
    Form.ELEMENTWISE,
    Scan,
    RUN,
    ScanCheck(keyed=False, decay=_DECAY),
    state,
    _DECAY,
)
