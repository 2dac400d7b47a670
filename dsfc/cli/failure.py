"""What an exception says on the terminal, and the exit code it gives."""

from __future__ import annotations

import os
import platform
import traceback
from collections.abc import Iterable
from importlib.metadata import version

import click

from dsfc.diagnostics.render import printable, render_all
from dsfc.diagnostics.report import Diagnostic, DiagnosticError

DIAGNOSTICS = 1
INTERNAL = 3


def report(error: Exception) -> int:
    """Prints an exception to standard error and returns the exit code."""
    if isinstance(error, DiagnosticError):
        say(error.diagnostics)
        return DIAGNOSTICS
    if os.environ.get("DSFC_TRACEBACK"):
        traceback.print_exception(error)
    # A note names the stage; nothing of the compiler is imported here, it may be what is broken.
    where = "".join(f" {note}" for note in getattr(error, "__notes__", ()))
    said = printable(" ".join(str(error).split()) or "no message")
    head = click.style("internal error", fg="red", bold=True)
    click.echo(f"{head}{where}: {type(error).__name__}: {said}", err=True)
    click.echo(
        "This is a fault of dsfc, not of the spec. Please report it with the spec, this message "
        "and\nthe traceback that DSFC_TRACEBACK=1 in the environment prints: "
        f"dsfc {version('dsfc')}, Python {platform.python_version()}, {platform.system()}.",
        err=True,
    )
    return INTERNAL


def say(diagnostics: Iterable[Diagnostic]) -> None:
    """Prints diagnostics to standard error."""
    click.echo(render_all(diagnostics, colour=True), err=True)
