"""A bar on a terminal for what takes long; nothing into pipes and files."""

from __future__ import annotations

import sys
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
