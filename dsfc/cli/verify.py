"""`dsfc verify`: runs a module against the definition of its mixer, or proves its kernels.

No other command needs torch; proofs do not.
"""

from __future__ import annotations

import click

from dsfc.cli.colours import coloured
from dsfc.cli.options import format_option
from dsfc.cli.process import bounded
from dsfc.cli.progress import progress
from dsfc.cli.spec import SpecWord, mixer_of, spec_and_mixer


@click.command(short_help="Run a module against its definition.")
@click.argument("target", type=SpecWord(), metavar="MODULE|SPEC[:MIXER]")
@click.option(
    "--spec", help="The spec, if it is neither beside the module, in this folder nor shipped."
)
@click.option("--mixer", metavar="NAME", help="Name of the mixer, if the spec has several.")
@click.option(
    "--fast", is_flag=True, help="Values and gradients only: every mode, cut, step, mask."
)
@click.option("--full", is_flag=True, help="Compile machine code too, and stream long; minutes.")
@click.option(
    "--kernels", is_flag=True, help="Run nothing: prove what the kernels of a SPEC compute."
)
@click.option(
    "--backend", metavar="NAME", help="With --kernels: the backend, such as triton.  [default: c]"
)
@format_option("the result")
@click.pass_context
def verify(
    ctx: click.Context,
    target: str,
    spec: str | None,
    mixer: str | None,
    fast: bool,
    full: bool,
    kernels: bool,
    backend: str | None,
    form: str,
) -> None:
    """Run an emitted module against the definition of its mixer.

    Compares every legal mode, forward and backward, with the float64 reference printed from the
    definition, and checks PyTorch's rules; --format json says what each check promises. A SPEC is
    compiled to a temporary file first. Exit code 1 if a check fails. A module is a program, and
    this command runs it.

    With --kernels nothing is compiled or run. The command says of each kernel of the SPEC whether
    it computes the recurrence: proved, for which lengths and sizes; refuted, by which numbers; or
    not decided, and why. Exit code 1 if a kernel is refuted.
    """
    target, mixer = spec_and_mixer(target, mixer)
    if fast and full:
        raise click.UsageError("give --fast or --full, not both")
    if kernels:
        if fast or full or spec is not None:
            raise click.UsageError("--kernels goes with a SPEC, --mixer, --backend and --format")
        ctx.exit(_prove(target, mixer, backend or "c", form))
    if backend is not None:
        raise click.UsageError("--backend goes with --kernels")
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
        click.echo(coloured(report.render()), nl=False)
    ctx.exit(0 if report.kept else 1)


def _prove(target: str, mixer: str | None, backend: str, form: str) -> int:
    """Prints what is proved of the kernels of a spec; returns the exit code."""
    from dsfc.api.kernels import kernel_proofs

    with bounded(f"verify {target} --kernels"):
        proofs = kernel_proofs(mixer_of(target, mixer), backend)
    if form == "json":
        import json

        click.echo(json.dumps(proofs.to_json(), ensure_ascii=False, indent=2))
    else:
        click.echo(coloured(proofs.render()), nl=False)
    return 0 if proofs.kept else 1
