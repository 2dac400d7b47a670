"""`dsfc convert`: the weights of one mixer or published layer for another."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dsfc.cli.options import mistakes_option, sizes_of
from dsfc.cli.progress import progress
from dsfc.cli.spec import SpecWord, mixer_of

if TYPE_CHECKING:
    from dsfc.api.published import Turned
    from dsfc.layouts.addresses import Moved


@click.command(short_help="Turn the weights of one mixer or published layer into another's.")
@click.argument("mixers", nargs=-1, type=SpecWord(), metavar="[SPEC[:MIXER] SPEC[:MIXER]]")
@click.argument("weights", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    help="The new file of weights; safetensors writes it if its name ends so.",
)
@click.option(
    "--map",
    "renamed",
    multiple=True,
    metavar="THEIRS=OURS",
    help="Identify an input or parameter of the second mixer with one of the first; those of equal "
    "names are one anyway.",
)
@click.option(
    "--layout",
    metavar="NAME|FILE",
    help="The layout map of a published layer, instead of two mixers.",
)
@click.option(
    "--prefix",
    default="",
    metavar="TEXT",
    help="What the names of the published layer's tensors begin with in its file.",
)
@click.option(
    "--size",
    "sizes",
    multiple=True,
    metavar="NAME=SIZE",
    help="A size that the weights do not tell.",
)
@click.option("--back", is_flag=True, help="From the emitted module to the published layer.")
@click.option(
    "--run-reference",
    is_flag=True,
    help="Import and run the published layer that a layout map of your own names.",
)
@mistakes_option
def convert(
    mixers: tuple[str, ...],
    weights: Path,
    out: Path,
    renamed: tuple[str, ...],
    layout: str | None,
    prefix: str,
    sizes: tuple[str, ...],
    back: bool,
    run_reference: bool,
) -> None:
    """Turn the weights of the first mixer's module, or of a published layer, into another's.

    WEIGHTS is a state_dict saved by torch, or a file of safetensors; nothing in it is executed. Of
    two mixers, the weights are written only if these are proved to be one function of equal
    parameters, as by `dsfc equiv`, and both modules give equal outputs in float64.

    With --layout the weights are those of a published layer. The layout map says which of its
    numbers is which of the module's; every number has its one place, or nothing is written. The
    published layer is run beside the module where it can be imported: shipped maps name layers of
    transformers. What a map of your own names is a program, and run only with --run-reference.
    """
    of_layouts = {"--prefix": prefix, "--size": sizes, "--back": back,
                  "--run-reference": run_reference}  # fmt: skip
    if layout is None:
        if len(mixers) != 2:
            raise click.UsageError("convert takes two mixers and weights, or --layout and weights")
        if (word := next((word for word, value in of_layouts.items() if value), None)) is not None:
            raise click.UsageError(f"{word} goes with --layout")
        _between_mixers(*mixers, weights, out, renamed)
        return
    if mixers or renamed:
        raise click.UsageError(f"--layout names the mixer; {'--map' if renamed else mixers[0]} "
                               "does not go with it")  # fmt: skip
    chosen = sizes_of(sizes)
    try:
        from dsfc.api.published import Request, convert_published
    except ImportError as e:
        raise _without_torch(e) from None
    request = Request(layout, weights, out, prefix, chosen, back, run_reference)
    with progress("moving the weights, then running both layers"):
        turned = convert_published(request)
    click.echo(f"written: {out}")
    for line in _told(turned):
        click.echo(f"  {line}")


def _between_mixers(a: str, b: str, weights: Path, out: Path, renamed: tuple[str, ...]) -> None:
    from dsfc.cli.equiv import identified, pair

    pairs = tuple(pair(word) for word in renamed)
    first, second = mixer_of(a), mixer_of(b)
    names = identified(pairs, first, second)
    try:
        from dsfc.api.convert import ParameterMap
        from dsfc.api.convert import convert as run
    except ImportError as e:
        raise _without_torch(e) from None
    with progress("proving that they are one function, then running both"):
        done = run(first, second, weights, out, ParameterMap(names))
    click.echo(f"written: {out}")
    at = ", ".join(f"{name} = {size}" for name, size in done.sizes.items())
    click.echo(f"  proved equal; outputs of both modules differ by {done.error:.1e} at most, {at}")
    for source, entry in done.moved:
        click.echo(f"  {entry}" if source == entry else f"  {entry} is {source}")
    for entry in done.free:
        click.echo(f"  {entry} is new: the output does not depend on it")
    for entry in done.left:
        click.echo(f"  {entry} of the first has no part in the second")


def _told(turned: Turned) -> Iterator[str]:
    """Yields the lines about each row, and how it is known to be right."""
    for m in turned.moved:
        yield f"{m.row.entry} is {_made(m)}: {_known(m)}"
    at = ", ".join(f"{name} = {size}" for name, size in turned.sizes.items())
    but = f", but of {', '.join(turned.unused)}," if turned.unused else ""
    yield f"proved: every number of {turned.title}{but} has one place in {turned.mixer}; {at}"
    if turned.compared is None:
        yield f"not run beside the published layer: {turned.absent}"
    else:
        yield (
            f"run: {turned.reference} and the module differ by {turned.compared.output:.1e} in "
            f"outputs, {turned.compared.gradient:.1e} in gradients, at most"
        )


def _made(m: Moved) -> str:
    """The sources of a row and what is done with them."""
    return f"{' and '.join(m.row.sources)}{''.join(f', {word}' for word in m.row.words)}"


def _known(m: Moved) -> str:
    """How a row is known to be right."""
    count = m.addresses.size - m.zeros
    how = "proved, bit for bit the same"
    if m.row.functions:
        how = f"computed, {' of '.join(reversed(m.row.functions))} rounded once"
    times = f", each {m.copies} times" if m.copies > 1 else ""
    zeros = f", and {m.zeros} zeros" if m.zeros else ""
    return f"{count} numbers{times}{zeros}, {how}"


def _without_torch(e: ImportError) -> click.UsageError:
    """Returns the error of a missing torch; raises that of any other library again."""
    if e.name != "torch":
        raise e
    return click.UsageError("convert runs both modules: install torch first")
