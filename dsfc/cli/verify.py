"""`dsfc verify`: runs a module against the definition of its mixer. The only command with torch."""

from __future__ import annotations

import click

from dsfc.cli.options import format_option
from dsfc.cli.progress import progress
from dsfc.cli.spec import SpecWord


@click.command(short_help="Run a module against its definition.")
@click.argument("target", type=SpecWord(), metavar="MODULE|SPEC")
@click.option(
    "--spec", help="The spec, if it is neither beside the module, in this folder nor shipped."
)
@click.option("--mixer", metavar="NAME", help="Name of the mixer, if the spec has several.")
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

    Compares every legal mode, forward and backward, with the float64 reference printed from the
    definition, and checks PyTorch's rules. A SPEC is compiled to a temporary file first. Exit code
    1 if a check fails. A module is a program, and this command runs it.
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
