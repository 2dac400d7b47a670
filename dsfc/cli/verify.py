"""`dsfc verify`: runs a module against the definition of its mixer. The only command with torch."""

from __future__ import annotations

import click

from dsfc.cli.options import format_option
from dsfc.cli.progress import progress
from dsfc.cli.spec import SpecWord


@click.command(short_help="Run a module against its definition.")
@click.argument("target", type=SpecWord(), metavar="MODULE|SPEC")
@click.option(
    "--spec", help="The spec of the module, if it is not beside it, in this folder or shipped."
)
@click.option("--mixer", metavar="NAME", help="Which mixer, where a text has several.")
@click.option(
    "--fast", is_flag=True, help="Values and gradients only: every mode, cut, step, mask."
)
@click.option("--full", is_flag=True, help="Compile machine code too, and stream long; minutes.")
@format_option("the result")
@click.pass_context
def verify(
    ctx: click.Context,
    target: str,
    spec: str | None,
    mixer: str | None,
    fast: bool,
    full: bool,
    form: str,
) -> None:
    """Run an emitted module against the definition of its mixer.

    Every legal mode, forward and backward, against the float64 reference that is printed from the
    definition, and against the rules of PyTorch. A SPEC is compiled for this and nothing is left
    behind. Exit code 1 if a promise is broken. A module is a program: this runs it.
    """
    if fast and full:
        raise click.UsageError("give --fast or --full, not both")
    with progress("starting torch") as shown:
        try:
            from dsfc.api.validate import validate as run
        except ImportError as e:
            if e.name != "torch":
                raise
            raise click.UsageError("verify runs the module: install torch first") from None
        report = run(target, spec, mixer, quick=not full, fast=fast, progress=shown)
    if form == "json":
        import json

        click.echo(json.dumps(report.to_json(), ensure_ascii=False, indent=2))
    else:
        click.echo(report.render(), nl=False)
    ctx.exit(0 if report.kept else 1)
