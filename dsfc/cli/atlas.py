"""`dsfc atlas`: the graph of mixers, from proofs alone."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dsfc.cli.options import format_option
from dsfc.cli.progress import progress
from dsfc.cli.spec import SpecWord

if TYPE_CHECKING:
    from dsfc.atlas.build import Charted
    from dsfc.atlas.ir import Atlas


@click.command(short_help="Chart which mixers are one function.")
@click.argument("specs", nargs=-1, type=SpecWord(), metavar="[SPEC]...")
@format_option("the atlas")
@click.option(
    "--conditions",
    is_flag=True,
    help="Search for conditions of equality and for special cases; may take hours for all mixers.",
)
@click.option("--explain", is_flag=True, help="List the pairs that are open or not comparable.")
@click.option(
    "--picture",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Draw the atlas into a new file, .png, .svg or .pdf; needs matplotlib.",
)
@click.option(
    "--cache",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of cached answers.  [default: the user's cache folder]",
)
@click.option("--no-cache", is_flag=True, help="Neither read nor write cached answers.")
def atlas(
    specs: tuple[str, ...],
    form: str,
    conditions: bool,
    explain: bool,
    picture: Path | None,
    cache: Path | None,
    no_cache: bool,
) -> None:
    """Chart mixers: which are one function, always or under conditions, from proofs alone.

    Without a SPEC all shipped mixers are charted. Each pair is asked about as by `dsfc equiv`, with
    inputs and parameters of one name identified; conditional statements are those that the mixers
    claim and that are proved. With --conditions, pairs that are not equal in general are also asked
    under what conditions they are, and whether one is a case of the other, which is an edge with a
    direction. Answers are kept by the hash of both systems and of the prover, so a second run asks
    only what has changed.
    """
    if picture is not None and os.path.lexists(picture):
        raise click.UsageError(f"{picture} exists already")
    if picture is not None and picture.suffix not in (".png", ".svg", ".pdf"):
        raise click.UsageError("--picture wants a name that ends in .png, .svg or .pdf")
    from dsfc.atlas.build import CONDITIONAL, EQUAL, build
    from dsfc.atlas.report import as_json, report
    from dsfc.atlas.store import NotPrivate, Store, default_folder

    store = None
    if not no_cache:
        try:
            store = Store(cache or default_folder())
        except NotPrivate as e:
            click.echo(f"nothing is kept: {e}", err=True)
    with progress("deriving") as shown:
        mixers, left_out = _mixers(specs)
        questions = (EQUAL, *CONDITIONAL) if conditions else (EQUAL,)
        charted = build(mixers, questions, store, shown, left_out)
    if form == "json":
        import json

        click.echo(json.dumps(as_json(charted), ensure_ascii=False, indent=1))
    else:
        click.echo(report(charted, explain), nl=False)
    if picture is not None:
        _draw(charted, picture)


def _mixers(specs: tuple[str, ...]) -> tuple[tuple[Charted, ...], tuple[tuple[str, str], ...]]:
    """The mixers of some specs, or all shipped ones, and those that have no system."""
    from dsfc.api.decide import claims
    from dsfc.api.locate import shipped_names
    from dsfc.api.pipeline import read
    from dsfc.atlas.build import Charted
    from dsfc.atlas.ir import Node
    from dsfc.diagnostics.catalogue import NameClash, NoOutput
    from dsfc.diagnostics.report import DiagnosticError
    from dsfc.expr.statements import PredicateName

    out: dict[str, Charted] = {}
    left_out: list[tuple[str, str]] = []
    for spec in specs or shipped_names():
        text = read(spec)
        for name in text.mixers:
            compilation = text.compilation(name)
            try:
                node = Node(name, compilation.mixer.doc or "", compilation.structure.title)
                charted = Charted(
                    node, compilation.system, claims(compilation, PredicateName.EQUIVALENT)
                )
            except DiagnosticError as e:
                if all(isinstance(d, NoOutput) for d in e.diagnostics):
                    continue  # a base for others
                if specs:
                    raise
                left_out.append((name, e.diagnostics[0].message))
                continue
            if name in out:
                span = compilation.mixer.span or text.spec.span
                raise DiagnosticError(
                    (NameClash(span, name=name, role="the name of another mixer"),)
                )
            out[name] = charted
    return tuple(out.values()), tuple(left_out)


def _draw(atlas: Atlas, picture: Path) -> None:
    """The picture in a new file, whole or not at all."""
    from io import BytesIO

    from dsfc.cli.output import create

    try:
        from dsfc.atlas.picture import draw
    except ImportError:
        from dsfc.diagnostics.file_error import file_error

        problem = "pictures need matplotlib: pip install 'dsfc[demo]'"
        raise file_error(picture, problem) from None
    drawn = BytesIO()
    draw(atlas, drawn, picture.suffix.removeprefix("."))
    create(picture, drawn.getvalue())
    click.echo(f"written: {picture}", err=True)
