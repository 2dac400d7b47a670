"""`dsfc new`: a commented spec to start from."""

from __future__ import annotations

import os
from pathlib import Path

import click

FORMS = ("recurrence", "attention", "kernel", "flow", "variant", "modifier")
"""The files of `dsfc/starters`, the plainest first."""


@click.command(short_help="Write a commented spec to start from.")
@click.argument("name")
@click.option(
    "--form",
    type=click.Choice(FORMS),
    default=FORMS[0],
    show_default=True,
    help="A state and its update; a sum over the past; a function of the lag; a differential "
    "equation; a change to a shipped mixer; a rewriting of any.",
)
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path, allow_dash=True),
    help="File to write, or - for standard output. [default: ./<name>.dsf]",
)
def new(name: str, form: str, out: Path | None) -> None:
    """Write a spec that compiles as it is, with a comment on each line.

    NAME is the name of the mixer. An existing file is not overwritten.
    """
    from dsfc.cli.output import create
    from dsfc.diagnostics.render import printable

    text = _text(name, form)
    if str(out) == "-":
        click.echo(text, nl=False)
        return
    path = Path(f"{name}.dsf") if out is None else out
    if os.path.isdir(path):
        path = path / f"{name}.dsf"
    create(path, text)
    click.echo(printable(f"written: {path}"))
    click.echo(printable(f"  dsfc check {path}, then dsfc compile {path}"))


def _text(name: str, form: str) -> str:
    """The text of a starter under another name."""
    import re
    from importlib import resources

    from dsfc.diagnostics.report import DiagnosticError
    from dsfc.source import Source
    from dsfc.syntax.parse import parse

    starter = resources.files("dsfc.starters") / f"{form}.dsf"
    text = re.sub(r"\bmine\b", lambda _: name, starter.read_text(encoding="utf-8"))
    try:
        called = parse(Source("<new>", text)).units[0].name.text
    except DiagnosticError:
        called = None
    if called is None or not re.fullmatch(r"\w+", name):
        raise click.BadParameter("a name is letters, digits and _, and no word of the language")
    return text
