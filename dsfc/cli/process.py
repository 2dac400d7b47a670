"""Bounds on the time and memory that a command may take in a process of its own."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from dsfc.limits import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    from dsfc.diagnostics.report import DiagnosticError


@dataclass(frozen=True, slots=True)
class Process:
    """Who runs the command line.

    Attributes:
        own: True where the process runs one command and ends; only then may it be ended.
    """

    own: bool = False


@contextmanager
def bounded(what: str, limits: Limits = DEFAULT_LIMITS) -> Iterator[None]:
    """Ends the process with the diagnostic E-LIMIT if the work inside takes too long or too much.

    Every stage has bounds on the sizes it works on, so this is a second lock. It is a thread and
    not a signal: it works on every system and in whatever the main thread is at. Nothing is
    written to files inside, so nothing is left half done.

    Args:
        what: the work, for the message.
        limits: `seconds` and `memory`.
    """
    process = click.get_current_context().find_object(Process)
    if process is None or not process.own:
        yield
        return
    import threading

    timer = threading.Timer(limits.seconds, _expire, (what, limits))
    timer.daemon = True
    timer.start()
    restore = _limit_memory(limits.memory)
    try:
        yield
    except MemoryError:
        # What filled the memory hangs on the traceback; the frames are gone once this is raised.
        bound = f"{limits.memory >> 20} MiB"
        raise _too_much(f"memory to {what}", "more", bound) from None
    finally:
        timer.cancel()
        restore()


def _expire(what: str, limits: Limits) -> None:
    from dsfc.diagnostics.render import render_all

    problem = _too_much(f"time to {what}", "more", f"{limits.seconds:g} s")
    sys.stdout.flush()
    sys.stderr.write(render_all(problem.diagnostics) + "\n")
    sys.stderr.flush()
    os._exit(1)


def _too_much(what: str, size: str, bound: str) -> DiagnosticError:
    from dsfc.diagnostics.catalogue import Limit
    from dsfc.diagnostics.report import DiagnosticError
    from dsfc.source import NOWHERE

    return DiagnosticError((Limit(NOWHERE, what=what, size=size, bound=bound),))


def _limit_memory(size: int) -> Callable[[], None]:
    """Bounds the address space, where the system can; returns what takes the bound off again."""
    try:
        import resource
    except ImportError:  # Windows
        return lambda: None
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    if soft != resource.RLIM_INFINITY and soft <= size:
        return lambda: None
    bound = size if hard == resource.RLIM_INFINITY else min(size, hard)
    try:
        resource.setrlimit(resource.RLIMIT_AS, (bound, hard))
    except (OSError, ValueError):  # macOS refuses
        return lambda: None
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
