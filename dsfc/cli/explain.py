"""`dsfc explain CODE`: the page of a diagnostic."""

from __future__ import annotations

import click


@click.command(short_help="Print the page of a diagnostic.")
@click.argument("code", required=False)
def explain(code: str | None) -> None:
    """Print the page of a diagnostic CODE, or list all codes."""
    from dsfc.diagnostics import catalogue
    from dsfc.diagnostics.report import nearest

    if code is None:
        for known, kind in sorted(catalogue.CODES.items()):
            click.echo(f"{known:<16} {(kind.__doc__ or '').splitlines()[0]}")
        return
    if code.upper() not in catalogue.CODES:
        near = nearest(code.upper(), catalogue.CODES)
        hint = f"; did you mean {near}?" if near else "; `dsfc explain` lists all"
        raise click.UsageError(f"there is no code {code}{hint}")
    click.echo(catalogue.explain(code))
