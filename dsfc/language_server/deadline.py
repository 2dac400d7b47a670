"""Ends work in a thread that takes too long; a thread cannot be ended from outside."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from types import FrameType

_CALLS = 256
"""After so many calls of functions the clock is looked at, which takes longer than most of them."""


class Expired(BaseException):
    """The time is over. No error, so that nothing on the way takes it for one."""


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Raises `Expired` inside once this thread has worked for so long.

    The clock of the thread is looked at as functions are called, so a busy machine does not change
    what expires, and a function that calls none is waited for.

    Args:
        seconds: of processor time.
    """
    last = time.thread_time() + seconds
    before = sys.gettrace()
    calls = count(1)

    def look(frame: FrameType, event: str, argument: object) -> None:
        if next(calls) % _CALLS == 0 and time.thread_time() > last:
            raise Expired

    sys.settrace(look)
    try:
        yield
    finally:
        sys.settrace(before)
