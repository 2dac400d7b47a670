"""Bounds on the time and memory of a command in a process of its own, and a sign of its work."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from dsfc.cli.options import chosen_form
from dsfc.limits import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    import threading

    from dsfc.diagnostics.report import DiagnosticError

_TICK = 1.0
"""Seconds after which a terminal is told what is going on, and how often."""

_PATIENCE = 6
"""How many times longer than it may work a command may take by the clock on the wall."""


@dataclass(frozen=True, slots=True)
class Process:
    """Who runs the command line.

    Attributes:
        own: True where the process runs one command and ends; only then may it be ended.
    """

    own: bool = False


WATCHDOG = "dsfc watchdog"
"""The name of the thread that ends the process."""


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

    from dsfc import current_span, resource_limits

    current_span.clear()
    done = threading.Event()
    args = done, what, limits, chosen_form()
    watch = threading.Thread(target=_watch, args=args, daemon=True, name=WATCHDOG)
    watch.start()
    restore = _limit_memory(limits.memory)
    try:
        with resource_limits.elsewhere():
            yield
    except MemoryError:
        # What filled the memory hangs on the traceback; the frames are gone once this is raised.
        bound = f"{limits.memory >> 20} MiB"
        raise _too_much(f"memory to {what}", "more", bound) from None
    finally:
        done.set()
        restore()
        watch.join()  # what it shows is gone before anything else is printed


def _watch(done: threading.Event, what: str, limits: Limits, form: str) -> None:
    """Ends the process when it has worked too long, or waited for something that does not come.

    Work is counted in processor time, so that a busy machine does not change what is refused.
    """
    started, began = time.process_time(), time.monotonic()
    last = began + _PATIENCE * limits.seconds
    left = limits.seconds
    shows = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    shown = False
    while left > 0 and time.monotonic() < last:
        ended = done.wait(min(left, _TICK) if shows else left)
        if ended and not shown:
            return
        if shows:
            _show("" if ended else _progress(what, time.monotonic() - began))
            shown = True
        if ended:
            return
        left = limits.seconds - (time.process_time() - started)
    if shown:
        _show("")
    _expire(what, limits, form)


def _progress(what: str, seconds: float) -> str:
    """What is done, since when and, where that is known, at which line."""
    from dsfc import current_span

    place = current_span.innermost()
    line = "" if place is None else f", at {place.source.name}:{place.line}"
    return f"{what}{line}, {seconds:.0f} s"


def _show(text: str) -> None:
    """Puts a line on the terminal in place of the one that was shown before; no text, no line."""
    from dsfc.diagnostics.render import printable

    width = max(shutil.get_terminal_size().columns - 1, 1)
    # Blanks and no escape sequence: any terminal takes them, and NO_COLOR asks for nothing else.
    sys.stderr.write(f"\r{printable(text)[:width]:<{width}}" + ("" if text else "\r"))
    sys.stderr.flush()


def _expire(what: str, limits: Limits, form: str) -> None:
    from dsfc.cli.failure import formatted

    problem = _too_much(f"time to {what}", "more", f"{limits.seconds:g} s")
    sys.stdout.flush()
    sys.stderr.write(formatted(problem.diagnostics, form) + "\n")
    sys.stderr.flush()
    os._exit(1)


def _too_much(what: str, size: str, bound: str) -> DiagnosticError:
    from dsfc import current_span
    from dsfc.diagnostics.catalogue import Limit
    from dsfc.diagnostics.report import DiagnosticError
    from dsfc.source import NOWHERE

    place = current_span.innermost() or NOWHERE
    return DiagnosticError((Limit(place, what=what, size=size, bound=bound),))


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
