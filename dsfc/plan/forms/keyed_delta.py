"""Scans whose tokens rewrite what their key finds, with a decay of head and key axes."""

from __future__ import annotations

from dsfc.plan.forms.row import Candidate, FormRow
from dsfc.plan.forms.scans import RUN, ScanCheck, state
from dsfc.plan.scan_ir import Form, Group, Scan

_DECAY = frozenset({Group.KEYS})


def _takes(block: Candidate) -> bool:
    return block.rewrites and block.has_key_decay


ROW = FormRow(
    Form.KEYED_DELTA,
    Scan,
    RUN,
    ScanCheck(keyed=True, decay=_DECAY, delta=True),
    state,
    _DECAY,
    shares=True,
    narrows=frozenset({Form.LOW_RANK}),
    takes=_takes,
)
