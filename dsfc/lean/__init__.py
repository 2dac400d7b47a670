"""Proofs by rows as Lean 4 text: `lean_text`."""

from __future__ import annotations

from dsfc.lean.export import NotWritten, lean_text

__all__ = ["NotWritten", "lean_text"]
