"""Options that several commands have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click


def format_option(of: str, *more: str) -> Callable[[Any], Any]:
    """Returns the option `--format` of a command, which reaches it as `form`.

    Args:
        of: what the command prints, and what is to be said of its formats, for the help.
        more: formats beside `human` and `json`.
    """
    return click.option(
        "--format",
        "form",
        type=click.Choice(["human", "json", *more]),
        default="human",
        show_default=True,
        help=f"How to print {of}.",
    )
