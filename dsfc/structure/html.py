"""A structure as a notebook shows it."""

from __future__ import annotations

from html import escape

from dsfc.structure.ir import Structure
from dsfc.structure.render import render


def html(structure: Structure) -> str:
    """Returns the text of a structure, laid out as it stands.

    Args:
        structure: what `classify` gave.
    """
    return f"<pre>{escape(render(structure))}</pre>"
