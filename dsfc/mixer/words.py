"""Words of the language that mean something in a mixer and cannot be defined in one."""

from __future__ import annotations

OUTPUT = "y"
"""The definition or state that a mixer gives."""

FORMS = frozenset({"sum", "mean", "prod", "fir", "taylor", "rename", "ones", "iota"})
"""What is written like a function and is none; primitives stand in their table."""
