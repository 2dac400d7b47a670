"""`dsfc rounding`: by how much a module's outputs may be off, mode by mode, dtype by dtype."""

from __future__ import annotations

from pathlib import Path

import click

from dsfc.cli.options import format_option, sizes_of
from dsfc.cli.spec import SpecWord, spec_and_mixer

UNKNOWN = 5


@click.command(short_help="Bound the rounding errors of a module.")
@click.argument("spec", type=SpecWord(), metavar="SPEC[:MIXER]")
@click.option(
    "--for",
    "domain",
    required=True,
    metavar="BOUNDS",
    help='Bounds of the inputs and the number of tokens, such as "abs(u) <= 1, L == 256".',
)
@click.option("--mixer", metavar="NAME", help="Name of the mixer, if the spec has several.")
@click.option(
    "--mode",
    "modes",
    multiple=True,
    metavar="MODE",
    help="A mode to bound; may be repeated.  [default: all]",
)
@click.option(
    "--dtype",
    "dtypes",
    multiple=True,
    type=click.Choice(["float32", "bfloat16", "float16"]),
    help="A dtype to bound; may be repeated.  [default: float32, bfloat16]",
)
@click.option(
    "--size", "sizes", multiple=True, metavar="AXIS=SIZE,…", help="Sizes of axes, such as d=8,h=2."
)
@click.option("--chunk", type=click.IntRange(1), help="Tokens of a chunk.  [default: the module's]")
@click.option(
    "--weights",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="The layer's state_dict, saved by torch.  [default: as the class draws them, seed 0]",
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
    """Bound the difference between a module's outputs and its formulas in exact arithmetic.

    The bounds are certified for all inputs that --for allows and for sums in any order, before the
    module is run. Parameters that --for bounds may have any value within the bound; the others have
    those that the class draws, or those of --weights. A warning names the line at which a mode may
    overflow or divide by 0. Beside each bound stand the largest error that a search saw, and the
    bound certified at the worst inputs of the search. Exit code 5 if some mode has no bound.
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
