"""JSON of a plan."""

from __future__ import annotations

from typing import Any

from dsfc.expr.json import decode, encode
from dsfc.plan.ir import Plan


def to_json(plan: Plan) -> dict[str, Any]:
    """Returns the plan as a JSON document (see `dsfc.expr.json`)."""
    return encode(plan)


def from_json(document: object) -> Plan:
    """Returns the plan of a document.

    Raises:
        ValueError: the document does not describe a plan.
    """
    plan: Plan = decode(document, Plan)
    return plan
