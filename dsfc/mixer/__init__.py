"""The typed mixer: what a spec means, with its verification, evaluation and rendering."""

from __future__ import annotations

from dsfc.mixer.axes import sizes
from dsfc.mixer.library import Library
from dsfc.mixer.resolve import resolve

__all__ = ["Library", "resolve", "sizes"]
