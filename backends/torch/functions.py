"""Primitives that are functions of the runtime: what is too long for a line of a statement."""

from __future__ import annotations

FUNCTIONS = frozenset(
    {"exprel", "legs_frequency", "legs_low_rank", "l2norm", "rmsnorm", "start_at"}
)
"""Primitives, sequences and steps of an initialiser, each a function of the runtime."""


def called(name: str) -> str:
    """Returns the identifier of a function of the table."""
    return f"_{name}"
