"""Names that mean the same in every expression and are defined by none."""

from __future__ import annotations

from dsfc.expr.tree import Field, Now, Ref, Time

TIME = "i"
"""The present token, in indices and lag powers."""

FIRST = "first"
"""The stream that is 1 at the first token of a sequence, else 0."""


def first(lag: int = 0) -> Ref:
    """Returns `first` as it was `lag` tokens ago: 1 at the token of that number, else 0."""
    return Ref(FIRST, frozenset(), Field.REAL, Time.TOKEN, Now(lag))
