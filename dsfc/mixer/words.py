"""Words of the language that mean something in a mixer and cannot be defined in one."""

from __future__ import annotations

TIME = "i"
"""The present token, in indices and lag powers."""

FIRST = "first"
"""1 at the first token of a sequence, else 0."""

OUTPUT = "y"
"""The definition or state that a mixer gives."""

FORMS = frozenset({"sum", "mean", "prod", "fir", "taylor", "rename", "ones", "iota"})
"""What is written like a function and is none; primitives stand in their table."""
