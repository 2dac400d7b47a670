"""The learning rate along a run."""

from __future__ import annotations

import math


def warm_cosine(step: int, steps: int, warm_up: int) -> float:
    """Returns the share of the largest rate: a linear warm-up, then half a cosine down to zero."""
    if step < warm_up:
        return (step + 1) / warm_up
    return 0.5 * (1 + math.cos(math.pi * (step - warm_up) / max(steps - warm_up, 1)))
