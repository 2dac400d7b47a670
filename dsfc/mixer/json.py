"""Mixers as JSON documents, in the format of `dsfc.expr.json`."""

from __future__ import annotations

from typing import Any

from dsfc.expr import json
from dsfc.mixer.ir import Mixer


def to_json(mixer: Mixer) -> dict[str, Any]:
    """Returns the document of a mixer; equal mixers give equal documents. Spans are left out."""
    return json.encode(mixer)


def from_json(document: object) -> Mixer:
    """Returns the mixer of a document.

    Raises:
        ValueError: the document does not describe a mixer.
    """
    made: Mixer = json.decode(document, Mixer)
    return made
