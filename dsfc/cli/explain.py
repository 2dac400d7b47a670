"""`dsfc explain CODE`: the page of a diagnostic."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click

from dsfc.cli.colours import code as as_code
from dsfc.cli.colours import heading

_FENCE = re.compile(r"^```(?:(\w+) (wrong|right))?$")
_INLINE = re.compile(r"`[^`\n]+`")


@click.command(short_help="Print the page of a diagnostic.")
@click.argument("code", required=False)
def explain(code: str | None) -> None:
    """Print the page of a diagnostic: what it means, a text that has it, and the same put right.

    CODE is the word in brackets in a message, such as E-SHAPE-MUL. Without it all codes are listed.
    """
    from dsfc.diagnostics import catalogue
    from dsfc.diagnostics.report import nearest

    if code is None:
        for known, kind in sorted(catalogue.CODES.items()):
            click.echo(f"{heading(f'{known:<16}')} {(kind.__doc__ or '').splitlines()[0]}")
        return
    if code.upper() not in catalogue.CODES:
        near = nearest(code.upper(), catalogue.CODES)
        hint = f"; did you mean {near}?" if near else "; `dsfc explain` lists all"
        raise click.UsageError(f"there is no code {code}{hint}")
    for line in _rendered(catalogue.explain(code)):
        click.echo(line)


def _rendered(page: str) -> Iterator[str]:
    """The lines of a page for people: titles stand out, examples are indented under their names."""
    first, *rest = page.splitlines()
    yield heading(first)
    fenced = False
    for line in rest:
        fence = _FENCE.match(line)
        if fence is not None:
            fenced = not fenced
            if fenced:
                yield heading(f"{fence[2]}:")
        elif fenced:
            yield f"    {as_code(line)}" if line else ""
        else:
            yield _INLINE.sub(lambda inline: as_code(inline[0]), line)
