"""Wrong usage: what is wrong comes first, how the command is used after it."""

from __future__ import annotations

from typing import IO, Any

import click

WIDEST = 44
"""Columns of an example beside which it is told what it does."""


class WithExamples(click.Command):
    """A command whose help ends with examples, and with what else to read."""

    examples: tuple[tuple[str, str], ...] = ()

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the examples."""
        with formatter.section("Examples"):
            formatter.write_dl(self.examples, col_max=WIDEST)


def examples(*listed: tuple[str, str]) -> type[WithExamples]:
    """Returns the class of a command with examples, each a command line and what it does."""
    return type("WithTheseExamples", (WithExamples,), {"examples": listed})


class WrongUsage(click.UsageError):
    """A usage error that says in its first line what to change (exit code 2)."""

    def __init__(self, error: click.UsageError) -> None:
        """Takes over what click found."""
        super().__init__(error.format_message(), error.ctx)

    def show(self, file: IO[Any] | None = None) -> None:
        """Prints the error, the usage and where help is."""
        click.echo(f"error: {self.message}", file=file, err=file is None)
        if self.ctx is not None:
            click.echo(self.ctx.get_usage(), file=file, err=file is None)
            name = self.ctx.help_option_names[-1]
            hint = f"Try '{self.ctx.command_path} {name}' for help."
            click.echo(hint, file=file, err=file is None)
