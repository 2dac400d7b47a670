"""Bounds on the time and memory of a command in a process of its own, and a sign of its work."""

from __future__ import annotations

import math
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from dsfc.cli.options import chosen_form, chosen_timeout, more_time
from dsfc.limits import CAN_WATCH, DEFAULT_LIMITS, PATIENCE, Limits

if TYPE_CHECKING:
    import threading

    from dsfc.diagnostics.report import DiagnosticError
    from dsfc.resource_limits import Exceeded

_TICK = 1.0
"""Seconds after which a terminal is told what is going on, and how often."""


@dataclass(frozen=True, slots=True)
class Process:
    """Who runs the command line.

    Attributes:
        own: True where the process runs one command and ends; only then may it be ended.
    """

    own: bool = False


WATCHDOG = "dsfc watchdog"
"""The name of the thread that ends the process."""


Salvage = Callable[[], int | None]
"""Prints what was found before the time was up and returns the exit code; None if it is nothing."""


@dataclass(frozen=True, slots=True)
class _Work:
    """What is bounded.

    Attributes:
        what: the work, for the message.
        limits: its bounds.
        form: the format of diagnostics.
        more: how to allow more time.
        salvage: prints what was found.
    """

    what: str
    limits: Limits
    form: str
    more: str
    salvage: Salvage


def nothing() -> None:
    """Salvages nothing."""


@contextmanager
def bounded(
    what: str, limits: Limits = DEFAULT_LIMITS, *, salvage: Salvage = nothing
) -> Iterator[None]:
    """Ends the process with the diagnostic E-LIMIT if the work inside takes too long or too much.

    Every stage has bounds on the sizes it works on, so this is a second lock. It is a thread and
    not a signal: it works on every system and in whatever the main thread is at. Nothing is
    written to files inside, so nothing is left half done.

    Args:
        what: the work, for the message.
        limits: `seconds` and `memory`; seconds by the clock are those of `--timeout`.
        salvage: what to do with what was found; the diagnostic is then left out. It may be called
            in another thread.
    """
    context = click.get_current_context()
    limits = replace(limits, elapsed=chosen_timeout())
    work = _Work(what, limits, chosen_form(), more_time(), salvage)
    process = context.find_object(Process)
    if process is None or not process.own or not CAN_WATCH:
        with _bounded_here(work, context):
            yield
        return
    import threading

    from dsfc import current_search, current_span, resource_limits

    current_span.clear()
    current_search.clear()
    done = threading.Event()
    args = done, work
    watch = threading.Thread(target=_watch, args=args, daemon=True, name=WATCHDOG)
    watch.start()
    restore = _limit_memory(limits.memory)
    try:
        with resource_limits.elsewhere():
            yield
    except MemoryError:
        # What filled the memory hangs on the traceback; the frames are gone once this is raised.
        code = salvage()
        if code is not None:
            context.exit(code)
        raise _too_much(work, resource_limits.Exceeded.MEMORY) from None
    finally:
        done.set()
        restore()
        watch.join()  # what it shows is gone before anything else is printed


@contextmanager
def _bounded_here(work: _Work, context: click.Context) -> Iterator[None]:
    """Bounds work in a process of somebody else's: by the clock alone, and nothing is ended."""
    from dsfc import resource_limits
    from dsfc.diagnostics.report import DiagnosticError

    if work.limits.elapsed is None:
        yield
        return
    watch = resource_limits.Watch(math.inf, elapsed=work.limits.elapsed)
    try:
        with resource_limits.elsewhere(), watch.watching():
            yield
    except resource_limits.Expired:
        code = work.salvage()
        if code is not None:
            context.exit(code)
        raise DiagnosticError(_too_much(work, watch.bound).diagnostics) from None


def _watch(done: threading.Event, work: _Work) -> None:
    """Ends the process when it has worked too long, or waited for something that does not come.

    Work is counted in processor time, so that a busy machine does not change what is refused.
    """
    started, began, limits = time.process_time(), time.monotonic(), work.limits
    timed = limits.elapsed is not None
    left = limits.seconds if limits.elapsed is None else limits.elapsed
    last = math.inf if timed else began + PATIENCE * limits.seconds
    shows = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    shown = False
    while left > 0 and time.monotonic() < last:
        ended = done.wait(min(left, _TICK) if shows else left)
        if ended and not shown:
            return
        if shows:
            _show("" if ended else _progress(work.what, time.monotonic() - began))
            shown = True
        if ended:
            return
        if limits.elapsed is None:
            left = limits.seconds - (time.process_time() - started)
        else:
            left = limits.elapsed - (time.monotonic() - began)
    if shown:
        _show("")
    _expire(work, waited=left > 0)


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


def clear_line() -> None:
    """Takes the sign of work off the terminal, for what is printed while the work goes on."""
    if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        _show("")


def _expire(work: _Work, waited: bool) -> None:
    """Ends the process; it waited if its time by the clock was up, and not that of its work."""
    code = None
    try:
        code = work.salvage()
        if code is None:
            from dsfc.cli.failure import formatted
            from dsfc.resource_limits import Exceeded

            problem = _too_much(work, Exceeded.WAIT if waited else Exceeded.WORK)
            sys.stderr.write(formatted(problem.diagnostics, work.form) + "\n")
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(1 if code is None else code)


def _too_much(work: _Work, kind: Exceeded) -> DiagnosticError:
    from dsfc import current_span
    from dsfc.diagnostics.report import DiagnosticError
    from dsfc.resource_limits import exceeded
    from dsfc.source import NOWHERE

    place = current_span.innermost() or NOWHERE
    return DiagnosticError((exceeded(work.what, work.limits, place, kind, work.more),))


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
