"""Scans whose decay, key and read are constants: all outputs are one convolution."""

from __future__ import annotations

from dsfc.plan.forms.row import Candidate, FormRow
from dsfc.plan.forms.scans import RUN, ScanCheck, state
from dsfc.plan.scan_ir import Form, Group, Scan

_DECAY = frozenset({Group.KEYS})


def _takes(block: Candidate) -> bool:
    return block.fixed


ROW = FormRow(
    Form.CONVOLUTION,
    Scan,
    RUN | {"parallel", "fft"},
    ScanCheck(keyed=None, decay=_DECAY, fixed=True, real=True),
    state,
    _DECAY,
    narrows=frozenset({Form.KEYED, Form.SELECTIVE, Form.ELEMENTWISE}),
    takes=_takes,
)
