"""The place in a text that this process works at.

A bound on time or memory ends work from outside, wherever it is. What is said then has a place all
the same: that of the mixer or the claim that was under way.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dsfc.source import Span

_places: list[Span] = []


@contextmanager
def at(span: Span | None) -> Iterator[None]:
    """Says that the work inside is about a place; of a span that is None nothing is known."""
    if span is None:
        yield
        return
    _places.append(span)
    try:
        yield
    except MemoryError:
        raise  # the place stays: who reports it asks when all frames are gone
    except BaseException:
        _places.pop()
        raise
    _places.pop()


def place() -> Span | None:
    """Returns the innermost place, None where nothing with a place is under way."""
    return _places[-1] if _places else None


def nothing() -> None:
    """Forgets all places, before work that is to have none of older work."""
    _places.clear()
