"""One stage of the pipeline: what bounds it, names it in errors, and checks its value."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from dsfc import current_span
from dsfc.diagnostics.report import DiagnosticError
from dsfc.limits import Limits
from dsfc.resource_limits import bounded
from dsfc.source import Span

_ValueT = TypeVar("_ValueT")


@contextmanager
def stage(name: str, what: str, place: Span | None, limits: Limits) -> Iterator[None]:
    """Bounds a stage, says what is under way, and notes on an internal error where it happened.

    Args:
        name: of the stage.
        what: it works on.
        place: of that in the text.
        limits: of its time and memory.
    """
    try:
        with bounded(f"{name} {what}", limits), current_span.entered(place):
            yield
    except DiagnosticError:
        raise
    except Exception as e:
        e.add_note(f"in stage {name}")
        raise


def verified(value: _ValueT, verify: Callable[[_ValueT], None]) -> _ValueT:
    """Returns a value, verified where `DSFC_CHECK` is set in the environment.

    Args:
        value: of a stage.
        verify: raises for a value that is none.
    """
    if os.environ.get("DSFC_CHECK", "") not in ("", "0"):
        verify(value)
    return value
