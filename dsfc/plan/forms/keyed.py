"""Scans whose decay has head and key axes."""

from __future__ import annotations

from dsfc.plan.forms.row import FormRow
from dsfc.plan.forms.scans import RUN, ScanCheck, state
from dsfc.plan.scan_ir import Form, Group, Scan

_DECAY = frozenset({Group.KEYS})

ROW = FormRow(
    Form.KEYED,
    Scan,
    RUN | {"parallel"},
    ScanCheck(keyed=True, decay=_DECAY),
    state,
    _DECAY,
    shares=True,
)
