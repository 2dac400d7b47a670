"""Scans whose decay has key and channel axes."""

from __future__ import annotations

from dsfc.plan.forms.row import Candidate, FormRow
from dsfc.plan.forms.scans import RUN, ScanCheck, state
from dsfc.plan.scan_ir import Form, Group, Scan

_DECAY = frozenset({Group.KEYS, Group.CHANNELS})


def _takes(block: Candidate) -> bool:
    return not block.fixed and bool(block.log.axes & frozenset(block.structure.channels))


ROW = FormRow(
    Form.SELECTIVE,
    Scan,
    RUN,
    ScanCheck(keyed=True, decay=_DECAY),
    state,
    _DECAY,
    narrows=frozenset({Form.KEYED}),
    takes=_takes,
)
