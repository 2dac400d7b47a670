"""Bounds on the time and memory that a command may take in a process of its own."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from dsfc.limits import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    import threading

    from dsfc.diagnostics.report import DiagnosticError

_PATIENCE = 6
"""How many times longer than it may work a command may take by the clock on the wall."""


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

    done = threading.Event()
    threading.Thread(target=_watch, args=(done, what, limits), daemon=True).start()
    restore = _limit_memory(limits.memory)
    try:
        yield
    except MemoryError:
        # What filled the memory hangs on the traceback; the frames are gone once this is raised.
        bound = f"{limits.memory >> 20} MiB"
        raise _too_much(f"memory to {what}", "more", bound) from None
    finally:
        done.set()
        restore()


def _watch(done: threading.Event, what: str, limits: Limits) -> None:
    """Ends the process when it has worked too long, or waited for something that does not come.

    Work is counted in processor time, so that a busy machine does not change what is refused.
    """
    started, last = time.process_time(), time.monotonic() + _PATIENCE * limits.seconds
    left = limits.seconds
    while left > 0 and time.monotonic() < last:
        if done.wait(left):
            return
        left = limits.seconds - (time.process_time() - started)
    _expire(what, limits)


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
