"""Counts the functions that a piece of work calls: figures that no other process disturbs."""

from __future__ import annotations

import sys
from collections.abc import Callable


def functions_called(work: Callable[[], object]) -> tuple[int, int]:
    """Returns how many functions of Python, and of C by Python, a piece of work calls.

    Args:
        work: is called once, and counted with the functions that it calls.
    """
    counts = {"call": 0, "c_call": 0}

    def count(frame: object, event: str, arg: object) -> None:
        if event in counts:
            counts[event] += 1

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return counts["call"], counts["c_call"] - 1  # the last one ends the count
