"""Faults of random mixers that are known and not mended yet: a pattern of what is said, and why.

A campaign counts them all the same; a test passes over them, so that it fails for a new one.
"""

from __future__ import annotations

import re

from beside import Outcome

KNOWN: tuple[tuple[str, str], ...] = ()
"""A pattern of kind, place and message, and what it is."""


def known(outcome: Outcome) -> str | None:
    """Returns what a failure is, None where it is new."""
    said = f"{outcome.kind}, {outcome.where}: {outcome.what}"
    return next((why for pattern, why in KNOWN if re.search(pattern, said)), None)
