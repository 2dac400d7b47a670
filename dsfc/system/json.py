"""A System as a JSON document."""

from __future__ import annotations

import json

from dsfc.expr.json import encode
from dsfc.system.ir import System

FORMAT = "dsfc.system/1"


def to_json(system: System) -> str:
    """Returns the System as JSON text; equal Systems give equal texts. Spans are left out."""
    document = {"format": FORMAT} | encode(system)
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"
