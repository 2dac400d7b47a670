"""Scans whose tokens rewrite what their key finds, with a decay of head axes alone."""

from __future__ import annotations

from dsfc.plan.forms.row import Candidate, FormRow
from dsfc.plan.forms.scans import RUN, ScanCheck, state
from dsfc.plan.scan_ir import Form, Scan


def _takes(block: Candidate) -> bool:
    return block.rewrites and not block.has_key_decay


ROW = FormRow(
    Form.DELTA,
    Scan,
    RUN,
    ScanCheck(keyed=True, delta=True),
    state,
    shares=True,
    narrows=frozenset({Form.LOW_RANK}),
    takes=_takes,
)
