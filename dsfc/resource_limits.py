"""Bounds on the time and memory of work in this process, which goes on when they are exceeded.

Every stage has bounds on the sizes it works on; this is a second lock. The command line has one of
its own, which ends the process.
"""

from __future__ import annotations

import ctypes
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path

from dsfc import current_search, current_span
from dsfc.diagnostics.catalogue import Limit
from dsfc.diagnostics.report import DiagnosticError
from dsfc.limits import CAN_WATCH, DEFAULT_LIMITS, PATIENCE, Limits
from dsfc.source import NOWHERE, Span

_TICK = 0.05
"""Seconds after which the clock and the memory are looked at again."""


class Expired(BaseException):
    """The work takes too long, or too much. No error, so that nothing takes it for one."""


class _Here(threading.local):
    """Whether work of this thread is bounded already."""

    bounded = False


_HERE = _Here()


@contextmanager
def bounded(what: str, limits: Limits = DEFAULT_LIMITS) -> Iterator[None]:
    """Raises the diagnostic E-LIMIT if the work inside takes too long or too much.

    Inside other bounded work the outer bounds count. Nothing may be written to files inside: the
    work ends at any place, as it would by Ctrl-C.

    Args:
        what: the work, for the message.
        limits: `seconds` of processor time of this thread, and `memory`: by how many bytes the
            process may grow, where the system tells (Linux).

    Raises:
        DiagnosticError: E-LIMIT.
    """
    if _HERE.bounded:
        yield
        return
    watch = Watch(limits.seconds, limits.memory, limits.elapsed)
    current_search.clear()
    try:
        with elsewhere(), watch.watching():
            yield
    except Expired:
        problem = exceeded(what, limits, watch.place or NOWHERE, watch.bound)
        raise DiagnosticError((problem,)) from None


class Exceeded(Enum):
    """Which bound was exceeded: its name in the message."""

    WORK = "time"
    WAIT = "time by the clock"
    MEMORY = "memory"


def exceeded(what: str, limits: Limits, place: Span, kind: Exceeded, more: str = "") -> Limit:
    """Returns the diagnostic of work that took too long, or too much memory.

    Args:
        what: the work.
        limits: its bounds.
        place: what was under way.
        kind: the bound that was exceeded.
        more: how to allow more time, as a sentence.
    """
    seconds = limits.seconds if limits.elapsed is None else limits.elapsed
    allowed = {
        Exceeded.WORK: f"{seconds:g} s",
        Exceeded.WAIT: f"{PATIENCE * limits.seconds:g} s",
        Exceeded.MEMORY: f"{limits.memory >> 20} MiB",
    }
    steps = ", ".join(current_search.tried())
    said = []
    if kind is Exceeded.WAIT:
        said.append(
            f"it had the processor for less than {limits.seconds:g} s: other programs have it, or "
            "it waits for something; run it again when the machine is less busy"
        )
    said += [more] if more and kind is not Exceeded.MEMORY else []
    said += [f"tried until then: {steps}"] if steps else []
    called = f"{kind.value} to {what}"
    return Limit(place, what=called, size="more", bound=allowed[kind], hint="; ".join(said) or None)


@contextmanager
def elsewhere() -> Iterator[None]:
    """Says that somebody else bounds the work of this thread: `bounded` does nothing inside."""
    before = _HERE.bounded
    _HERE.bounded = True
    try:
        yield
    finally:
        _HERE.bounded = before


class Watch:
    """A thread that looks at the clock and the memory, and raises `Expired` in the one that works.

    It works in any thread and costs the work nothing. The exception comes between two steps of
    Python: one call of a function that is not written in Python is waited for.

    Attributes:
        bound: the bound that was exceeded, if one was.
        place: what was under way when the bound was exceeded.
    """

    def __init__(
        self, seconds: float, memory: float = math.inf, elapsed: float | None = None
    ) -> None:
        """Takes the bounds.

        Args:
            seconds: of processor time.
            memory: bytes that the process may grow by.
            elapsed: seconds by the clock on the wall, which count in place of processor time.
        """
        self.bound = Exceeded.WORK
        self.place: Span | None = None
        self._seconds, self._memory, self._elapsed = seconds, memory, elapsed
        self._lock = threading.Lock()
        self._done = threading.Event()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Bounds the work inside, where a thread can watch it.

        Raises:
            Expired: once, inside or at the end of it, and never afterwards.
        """
        if not CAN_WATCH:
            yield
            return
        worker = threading.get_ident()
        clock = _clock(worker)
        watch = threading.Thread(target=self._watch, args=(worker, clock), daemon=True)
        watch.start()
        with _DROPPED.noted():
            try:
                try:
                    yield
                finally:
                    with self._lock:  # from here on the other thread raises nothing
                        self._done.set()
            except Expired:
                self._done.set()  # where it came in the lines above
                raise
            finally:
                if watch.is_alive():
                    watch.join()

    def _watch(self, worker: int, clock: Callable[[], float]) -> None:
        began, started, held = time.monotonic(), clock(), _resident()
        left = self._seconds if self._elapsed is None else self._elapsed
        while not self._done.wait(min(max(left, 0.0), _TICK)):
            passed = time.monotonic() - began
            if self._elapsed is None:
                left, waited = (
                    self._seconds - (clock() - started),
                    passed > PATIENCE * self._seconds,
                )
            else:
                left, waited = self._elapsed - passed, False
            if _resident() - held > self._memory:
                self.bound = Exceeded.MEMORY
                break
            if left <= 0:
                break
            if waited:
                self.bound = Exceeded.WAIT
                break
        with self._lock:
            if not self._done.is_set():
                self.place = current_span.innermost()
                _raise_in(worker)
        while not self._done.wait(_TICK):
            with self._lock:
                if not self._done.is_set() and _DROPPED.taken(worker):
                    _raise_in(worker)


class _Dropped:
    """The threads in which Python dropped an `Expired`.

    It drops what is raised in a callback of a weak reference or in `__del__`, and tells
    `sys.unraisablehook`. That is replaced while anything is watched.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watched = 0
        self._threads: set[int] = set()
        self._before = sys.unraisablehook
        self._hook = self._told  # the same object each time, unlike a method

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Notes what is dropped in this thread meanwhile."""
        with self._lock:
            self._watched += 1
            if sys.unraisablehook is not self._hook:
                self._before, sys.unraisablehook = sys.unraisablehook, self._hook
        try:
            yield
        finally:
            with self._lock:
                self._threads.discard(threading.get_ident())
                self._watched -= 1
                if not self._watched and sys.unraisablehook is self._hook:
                    sys.unraisablehook = self._before

    def taken(self, thread: int) -> bool:
        """Returns whether one was dropped in a thread since this was asked last."""
        with self._lock:
            dropped = thread in self._threads
            self._threads.discard(thread)
        return dropped

    def _told(self, what: sys.UnraisableHookArgs) -> None:
        if what.exc_type is Expired:  # without the lock, which this thread may hold
            self._threads.add(threading.get_ident())
        else:
            self._before(what)


_DROPPED = _Dropped()


def _raise_in(thread: int) -> None:
    """Has Python raise `Expired` in another thread."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(Expired))


def _clock(thread: int) -> Callable[[], float]:
    """The processor time of a thread; of the process where the system has no clock of threads."""
    if hasattr(time, "pthread_getcpuclockid"):
        number = time.pthread_getcpuclockid(thread)
        return lambda: time.clock_gettime(number)
    return time.process_time


def _resident() -> int:
    """Bytes of memory that this process has; 0 where that is not told."""
    if sys.platform != "linux":
        return 0
    pages = Path("/proc/self/statm").read_bytes().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
