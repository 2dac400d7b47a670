"""Structures as JSON documents, in the format of `dsfc.expr.json`."""

from __future__ import annotations

from typing import Any

from dsfc.expr import json
from dsfc.structure.ir import Structure


def to_json(structure: Structure) -> dict[str, Any]:
    """Returns the document of a structure; equal structures give equal documents."""
    return json.encode(structure)


def from_json(document: object) -> Structure:
    """Returns the structure of a document.

    Raises:
        ValueError: the document does not describe a structure.
    """
    made: Structure = json.decode(document, Structure)
    return made
