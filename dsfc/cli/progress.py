"""A bar on a terminal for what takes long; nothing into pipes and files."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(first: str) -> Iterator[Callable[[int, int, str], None] | None]:
    """Shows a bar that says what is done; gives None where nobody looks.

    Args:
        first: what is done before anything is counted.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(first, total=None)
        yield lambda done, total, name: bar.update(
            task, completed=done, total=total, description=name
        )


LINES = 10.0
"""Seconds between two lines about the work, where nobody looks at a terminal."""


@contextmanager
def counted(first: str, what: str) -> Iterator[Callable[[int, int, str], None]]:
    """Shows how much of long work is done and how long the rest may take, on standard error.

    On a terminal that is a bar; elsewhere it is a line now and then, and none for what is short.

    Args:
        first: what is done before anything is counted.
        what: what is counted, in the plural.
    """
    if not sys.stderr.isatty():
        yield _Lines(what)
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task, shown = bar.add_task(first, total=None), first

        def show(done: int, total: int, name: str) -> None:
            nonlocal task, shown
            if name != shown:  # the time left is that of one kind of work
                bar.remove_task(task)
                task, shown = bar.add_task(name, total=total, completed=done), name
            bar.update(task, completed=done, total=total)

        yield show


class _Lines:
    """Lines about the work."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._said = time.monotonic()
        self._name, self._began, self._before = "", 0.0, 0

    def __call__(self, done: int, total: int, name: str) -> None:
        now = time.monotonic()
        if name != self._name:
            self._name, self._began, self._before = name, now, done
        if now - self._said < LINES:
            return
        self._said = now
        fresh = done - self._before
        left = (now - self._began) * (total - done) / fresh if fresh else 0.0
        ends = f", about {_spoken(left)} left" if fresh and done < total else ""
        print(f"{name}: {done:,} of {total:,} {self._what}{ends}", file=sys.stderr, flush=True)


def _spoken(seconds: float) -> str:
    """A time in words."""
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"
