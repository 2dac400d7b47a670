"""`dsfc atlas`: the graph of mixers, from proofs alone."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dsfc.cli.options import format_option
from dsfc.cli.progress import counted
from dsfc.cli.spec import SpecWord, spec_and_mixer

if TYPE_CHECKING:
    from dsfc.atlas.build import Charted
    from dsfc.atlas.ir import Atlas
    from dsfc.atlas.store import Store

INTERRUPTED = 130
"""The exit code of what Ctrl-C ended, as shells have it."""

REPORTS = (".html", ".md", ".json", ".txt")
PICTURES = (".png", ".svg", ".pdf")

PAIRS_OF_A_PROCESS = 8
"""A process more is started for this many pairs; it takes as long as some of them to start."""


@click.command(short_help="Chart which mixers are one function.")
@click.argument("specs", nargs=-1, type=SpecWord(), metavar="[SPEC[:MIXER]]...")
@format_option("the atlas")
@click.option(
    "--conditions",
    is_flag=True,
    help="Search for conditions of equality and for special cases, too.",
)
@click.option(
    "--limit",
    type=click.FloatRange(min=0.1, max=86400),
    default=4.0,
    show_default=True,
    metavar="SECONDS",
    help="Processor time for one pair, shared by all its questions; pairs of different "
    "structure classes have a tenth.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1, max=256),
    metavar="N",
    help="How many processes work at once.  [default: one for each core]",
)
@click.option("--explain", is_flag=True, help="List the pairs that are open or not comparable.")
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the atlas into a new file, .html, .md, .json or .txt, in place of printing it.",
)
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
@click.pass_context
def atlas(
    ctx: click.Context,
    specs: tuple[str, ...],
    form: str,
    conditions: bool,
    limit: float,
    jobs: int | None,
    explain: bool,
    out: Path | None,
    picture: Path | None,
    cache: Path | None,
    no_cache: bool,
) -> None:
    """Chart which mixers are one function, always or under conditions, from proofs alone.

    Without a SPEC all shipped mixers are charted. Each pair is compared as by `dsfc equiv`; inputs
    and parameters of one name are identified. Equalities under conditions are those that the mixers
    claim, if they are proved. --conditions also asks of each pair that is not equal in general
    whether one is a case of the other, an edge with a direction, and under what conditions they are
    equal. Refutations are tried first, as they take the least time.

    A question that takes longer than --limit stays unknown; verdicts reached by then are kept.
    Answers are cached under the hash of both systems and of the prover, so a second run asks only
    about what has changed or had less time. Ctrl-C ends a run with a report of what is known by
    then (exit code 130).
    """
    _check(out, REPORTS, "--out")
    _check(picture, PICTURES, "--picture")
    from dsfc.atlas.build import build
    from dsfc.atlas.questions import CONDITIONAL, EQUAL

    with counted("deriving", "pairs") as shown:
        mixers, left_out = _mixers(specs)
        pairs = len(mixers) * (len(mixers) - 1) // 2
        processes = min(jobs or os.cpu_count() or 1, 1 + pairs // PAIRS_OF_A_PROCESS)
        questions = (EQUAL, *CONDITIONAL) if conditions else (EQUAL,)
        store = None if no_cache else _store(cache)
        charted = build(mixers, questions, store, shown, left_out, limit, processes)
    _give(charted, form, explain, out)
    if picture is not None:
        _draw(charted, picture)
    if not charted.complete:
        click.echo("interrupted: what was not asked is listed as not decided", err=True)
        ctx.exit(INTERRUPTED)


def _check(path: Path | None, endings: tuple[str, ...], option: str) -> None:
    """Refuses a file that exists, or has a name that says no form."""
    if path is not None and os.path.lexists(path):
        raise click.UsageError(f"{path} exists already")
    if path is not None and path.suffix not in endings:
        ends = f"{', '.join(endings[:-1])} or {endings[-1]}"
        raise click.UsageError(f"{option} wants a name that ends in {ends}")


def _store(cache: Path | None) -> Store | None:
    from dsfc.atlas.store import NotPrivate, Store, default_folder

    try:
        return Store(cache or default_folder())
    except NotPrivate as e:
        click.echo(f"nothing is kept: {e}", err=True)
    return None


def _give(atlas: Atlas, form: str, explain: bool, out: Path | None) -> None:
    """Prints an atlas, or writes it into a new file in the form that its name says."""
    from dsfc.atlas.page import html, markdown
    from dsfc.atlas.report import json_text, report
    from dsfc.cli.output import create

    forms: dict[str, Callable[[], str]] = {
        ".html": lambda: html(atlas, _svg(atlas)),
        ".md": lambda: markdown(atlas),
        ".json": lambda: json_text(atlas),
        ".txt": lambda: report(atlas, explain),
    }
    if out is None:
        click.echo(forms[".json" if form == "json" else ".txt"](), nl=False)
        return
    create(out, forms[out.suffix]())
    click.echo(f"written: {out}", err=True)


def _mixers(specs: tuple[str, ...]) -> tuple[tuple[Charted, ...], tuple[tuple[str, str], ...]]:
    """The mixers of some specs, or all shipped ones, and those that have no system."""
    from dataclasses import replace
    from hashlib import sha256

    from dsfc.api.decide import claims
    from dsfc.api.locate import shipped_names
    from dsfc.api.pipeline import read
    from dsfc.atlas.build import Charted
    from dsfc.atlas.ir import Node
    from dsfc.diagnostics.catalogue import NameClash, NoOutput
    from dsfc.diagnostics.report import DiagnosticError
    from dsfc.expr.statements import PredicateName
    from dsfc.layer_parts import NO_PARTS
    from dsfc.mixer.render import render

    out: dict[str, Charted] = {}
    left_out: list[tuple[str, str]] = []
    for spec in specs or shipped_names():
        file, chosen = spec_and_mixer(spec)
        text = read(file)
        for name in text.mixers if chosen is None else (text.compilation(chosen).name,):
            compilation = text.compilation(name)
            try:
                mixer = compilation.mixer
                # What stands around a mixer in a layer is no part of what is compared.
                said = sha256(render(replace(mixer, layer=NO_PARTS)).encode()).hexdigest()
                node = Node(name, mixer.doc or "", compilation.structure.title, said)
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
    from dsfc.cli.output import create

    drawn = _drawn(atlas, picture.suffix.removeprefix("."))
    if drawn is None:
        from dsfc.diagnostics.file_error import file_error

        problem = "pictures need matplotlib: pip install 'dsfc[demo]'"
        raise file_error(picture, problem)
    create(picture, drawn)
    click.echo(f"written: {picture}", err=True)


def _svg(atlas: Atlas) -> str:
    """The picture for a page; a page has none where matplotlib is not installed."""
    return (_drawn(atlas, "svg") or b"").decode()


def _drawn(atlas: Atlas, form: str) -> bytes | None:
    """The picture; None where matplotlib is not installed."""
    from io import BytesIO

    try:
        from dsfc.atlas.picture import draw
    except ImportError:
        return None
    drawn = BytesIO()
    draw(atlas, drawn, form)
    return drawn.getvalue()
