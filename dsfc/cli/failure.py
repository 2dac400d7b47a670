"""What an exception says on the terminal, and the exit code it gives."""

from __future__ import annotations

import os
import platform
import traceback
from collections.abc import Iterable
from importlib.metadata import version

import click

from dsfc.cli.options import chosen_form
from dsfc.diagnostics.render import printable, render_all, render_short, to_json
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
    """Prints diagnostics to standard error, in the format that the command was asked for."""
    click.echo(formatted(diagnostics, chosen_form(), colour=True), err=True)


def formatted(diagnostics: Iterable[Diagnostic], form: str, *, colour: bool = False) -> str:
    """Returns diagnostics in one of the formats of `dsfc.cli.options.DIAGNOSTICS`."""
    listed = tuple(diagnostics)
    match form:
        case "json":
            return to_json(listed)
        case "sarif":
            from dsfc.diagnostics.sarif import to_sarif

            return to_sarif(listed)
        case "short":
            return "\n".join(map(render_short, listed))
    return render_all(listed, colour=colour)


class Mistakes:
    """Diagnostics of several texts: told as they come, or where they are one document at the end.

    Attributes:
        count: of the texts that had some.
    """

    def __init__(self) -> None:
        """Starts with none."""
        self.count = 0
        self._kept: list[Diagnostic] = []

    def add(self, diagnostics: Iterable[Diagnostic]) -> None:
        """Takes those of one text."""
        self.count += 1
        if chosen_form() in ("json", "sarif"):
            self._kept += diagnostics
        else:
            say(diagnostics)

    def end(self) -> int:
        """Prints what was kept, and returns the exit code."""
        if self._kept:
            say(self._kept)
        return DIAGNOSTICS if self.count else 0
