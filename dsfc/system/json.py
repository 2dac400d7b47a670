"""Systems as JSON and back."""

from __future__ import annotations

import json

from dsfc.expr.json import decode, encode
from dsfc.system.ir import System

FORMAT = "dsfc.system/1"


def to_json(system: System) -> str:
    """Returns the System as JSON text; equal Systems give equal texts. Spans are left out."""
    document = {"format": FORMAT} | encode(system)
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def from_json(text: str) -> System:
    """Returns the System of a JSON text.

    The value is well typed, not necessarily well formed: `verify` it before use.

    Raises:
        ValueError: the text is not JSON, not of this format, or not a System.
    """
    document = json.loads(text)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ValueError(f"not a document of format {FORMAT}")
    system: System = decode(document, System)
    return system
