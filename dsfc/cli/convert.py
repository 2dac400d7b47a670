"""`dsfc convert`: the weights of one mixer for another."""

from __future__ import annotations

from pathlib import Path

import click

from dsfc.cli.options import mistakes_option
from dsfc.cli.progress import progress
from dsfc.cli.spec import SpecWord, mixer_of


@click.command(short_help="Turn the weights of one mixer into another's.")
@click.argument("a", type=SpecWord(), metavar="SPEC[:MIXER]")
@click.argument("b", type=SpecWord(), metavar="SPEC[:MIXER]")
@click.argument("weights", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    help="The new file of weights.",
)
@click.option(
    "--map",
    "renamed",
    multiple=True,
    metavar="THEIRS=OURS",
    help="Identify an input or parameter of the second mixer with one of the first; those of equal "
    "names are one anyway.",
)
@mistakes_option
def convert(a: str, b: str, weights: Path, out: Path, renamed: tuple[str, ...]) -> None:
    """Turn the weights of the first mixer's module into weights of the second's.

    WEIGHTS is a state_dict saved by torch; nothing in it is executed. The weights are written only
    if the two mixers are proved to be one function of equal parameters, as by `dsfc equiv`, and
    both modules give equal outputs in float64. Otherwise the reason is printed.
    """
    from dsfc.cli.equiv import identified, pair

    pairs = tuple(pair(word) for word in renamed)
    first, second = mixer_of(a), mixer_of(b)
    names = identified(pairs, first, second)
    try:
        from dsfc.api.convert import ParameterMap
        from dsfc.api.convert import convert as run
    except ImportError as e:
        if e.name != "torch":
            raise
        raise click.UsageError("convert runs both modules: install torch first") from None
    with progress("proving that they are one function, then running both"):
        done = run(first, second, weights, out, ParameterMap(names))
    click.echo(f"written: {out}")
    sizes = ", ".join(f"{name} = {size}" for name, size in done.sizes.items())
    click.echo(
        f"  proved equal; outputs of both modules differ by {done.error:.1e} at most, {sizes}"
    )
    for source, entry in done.moved:
        click.echo(f"  {entry}" if source == entry else f"  {entry} is {source}")
    for entry in done.free:
        click.echo(f"  {entry} is new: the output does not depend on it")
    for entry in done.left:
        click.echo(f"  {entry} of the first has no part in the second")
