"""`dsfc rounding`: by how much a module's outputs may be off, mode by mode, dtype by dtype."""

from __future__ import annotations

from pathlib import Path

import click

from dsfc.cli.equiv import sizes_of
from dsfc.cli.options import format_option
from dsfc.cli.spec import SpecWord, spec_and_mixer

UNKNOWN = 5


@click.command(short_help="Bound the rounding errors of a module.")
@click.argument("spec", type=SpecWord(), metavar="SPEC[:MIXER]")
@click.option(
    "--for",
    "domain",
    required=True,
    metavar="BOUNDS",
    help='Where inputs lie, and how long they are, such as "abs(u) <= 1, L == 256".',
)
@click.option("--mixer", metavar="NAME", help="Name of the mixer, if the spec has several.")
@click.option("--mode", "modes", multiple=True, metavar="MODE", help="A mode; all if not given.")
@click.option(
    "--dtype",
    "dtypes",
    multiple=True,
    type=click.Choice(["float32", "bfloat16", "float16"]),
    help="A dtype; float32 and bfloat16 if not given.",
)
@click.option("--size", "sizes", multiple=True, metavar="AXIS=SIZE,…", help="Sizes of axes.")
@click.option("--chunk", type=click.IntRange(1), help="Tokens of a chunk.")
@click.option(
    "--weights",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="A file of the layer's state_dict; as the class draws them if not given.",
)
@format_option("the bounds")
@click.pass_context
def rounding(
    ctx: click.Context,
    spec: str,
    domain: str,
    mixer: str | None,
    modes: tuple[str, ...],
    dtypes: tuple[str, ...],
    sizes: tuple[str, ...],
    chunk: int | None,
    weights: Path | None,
    form: str,
) -> None:
    """Bound how far a module's outputs are from its formulas evaluated exactly.

    The bounds are certified for all inputs that --for allows, before anything is run, and hold for
    sums in any order. Parameters that --for bounds vary as well; others have the values of the
    class or of --weights. Where a mode may overflow or divide by 0 a warning says at which line.
    Beside each bound stand the largest error of a search, and what is certified at the worst inputs
    that were found. Exit code 5 if some mode has no bound.
    """
    chosen = sizes_of(sizes)
    spec, mixer = spec_and_mixer(spec, mixer)
    try:
        from dsfc.api.rounding import rounding as bounded
    except ImportError as e:
        if e.name != "torch":
            raise
        raise click.UsageError("rounding runs the module: install torch first") from None
    try:
        report = bounded(
            spec,
            domain,
            mixer,
            sizes=chosen or None,
            modes=modes,
            dtypes=dtypes or ("float32", "bfloat16"),
            chunk=chunk,
            weights=weights,
        )
    except ValueError as e:
        raise click.UsageError(str(e)) from None
    if form == "json":
        import json

        click.echo(json.dumps(report.to_json(), ensure_ascii=False, indent=2))
    else:
        click.echo(report.render(), nl=False)
    ctx.exit(0 if report.certified else UNKNOWN)
