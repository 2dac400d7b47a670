"""`dsfc verify`: runs a module against the definition of its mixer. The only command with torch."""

from __future__ import annotations

import click


@click.command(short_help="Run a module against its definition.")
@click.argument("target", metavar="MODULE|SPEC")
@click.pass_context
def verify(ctx: click.Context, target: str) -> None:
    """Run a module against its definition."""
