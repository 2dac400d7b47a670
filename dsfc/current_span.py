"""The span of the text that this process works on.

A bound on time or memory ends work from outside, at any point of the program. The message still has
a place: the span of the mixer or the claim that was in progress.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dsfc.source import Span

_spans: list[Span] = []


@contextmanager
def entered(span: Span | None) -> Iterator[None]:
    """Declares that the work inside is about a span; None declares nothing."""
    if span is None:
        yield
        return
    _spans.append(span)
    try:
        yield
    except MemoryError:
        raise  # the span stays: who reports the error asks when all frames are gone
    except BaseException:
        _spans.pop()
        raise
    _spans.pop()


def innermost() -> Span | None:
    """Returns the innermost span entered, None where no work with a span is in progress."""
    return _spans[-1] if _spans else None


def clear() -> None:
    """Forgets all spans, so that new work reports none of older work."""
    _spans.clear()
