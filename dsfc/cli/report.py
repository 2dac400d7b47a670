"""`dsfc report`: one mixer as an HTML file, with everything that dsfc knows and computes of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dsfc.cli.options import mistakes_option, sizes_of
from dsfc.cli.progress import progress
from dsfc.cli.spec import SpecWord, mixer_of

if TYPE_CHECKING:
    from dsfc.api.pipeline import Compilation
    from dsfc.diagnostics.report import DiagnosticError
    from dsfc.report.subject import Given

STEPS = 8
"""Things that are told while a mixer is analysed, for the bar."""


@click.command(short_help="Write what a mixer is and does as one HTML file.")
@click.argument("spec", type=SpecWord(), metavar="SPEC[:MIXER]")
@click.argument("module", type=click.Path(path_type=Path, dir_okay=False), required=False)
@click.option("--mixer", metavar="NAME", help="Name of the mixer, if the spec has several.")
@click.option(
    "--weights",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A state_dict of its module, saved by torch: analyses with trained weights too.",
)
@click.option(
    "--data",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Tokens: a .npy of one input or a .npz of all, [L, axes] or [B, L, axes].",
)
@click.option(
    "--size", "sizes", multiple=True, metavar="AXIS=SIZE,…", help="Sizes, such as d=32,n=8."
)
@click.option("--tokens", type=click.IntRange(2, 1024), help="Tokens of a sequence.  [default: 64]")
@click.option(
    "--atlas",
    type=click.Path(path_type=Path, dir_okay=False),
    help="What `dsfc atlas --format json` printed: its statements about this mixer.",
)
@click.option("-o", "--out", help="The file, or its folder.  [default: MIXER.html]")
@click.option("--force", is_flag=True, help="Replace a file that exists.")
@mistakes_option
def report(
    spec: str,
    module: Path | None,
    mixer: str | None,
    weights: Path | None,
    data: Path | None,
    sizes: tuple[str, ...],
    tokens: int | None,
    atlas: Path | None,
    out: str | None,
    force: bool,
) -> None:
    """Write what a mixer is and does as one HTML file that loads nothing.

    The page has the spec beside Λ, B, C and D; eigenvalues in each gauge, memory, the kernel Φ,
    influence, frequency response, over-smoothing, costs, claims with their proofs, and the modes
    of the emitted module. Analyses are made at small sizes that --size changes, of the parameters
    that the spec starts from, and of trained ones with --weights. MODULE is a program, and
    --weights imports it; without it one is emitted.
    """
    if module is not None and weights is None:
        raise click.UsageError("a MODULE goes with --weights")
    chosen = sizes_of(sizes)
    with drawing(spec):
        from dsfc.report.page import report as page
        from dsfc.report.subject import subject
    compilation = mixer_of(spec, mixer)
    refuse_existing(out, f"{compilation.name}.html", force)
    extra = _given(compilation, chosen, tokens, module, weights, data, atlas)
    with told(STEPS) as tell:
        text = page(subject(compilation, extra, tell))
    write(out, f"{compilation.name}.html", text, force)


@contextmanager
def drawing(what: str) -> Iterator[None]:
    """Turns a library for charts or formulas that is not installed into a diagnostic.

    Args:
        what: the mixer, for the message.

    Raises:
        DiagnosticError: E-REPORT.
    """
    try:
        yield
    except ModuleNotFoundError as e:
        library = (e.name or "").partition(".")[0]
        if library not in ("matplotlib", "latex2mathml"):
            raise
        hint = "pip install 'dsfc[report]'"
        raise no_report(what, f"it needs {library}, which is not installed", hint) from None


def no_report(mixer: str, problem: str, hint: str | None = None) -> DiagnosticError:
    """Returns the diagnostic E-REPORT."""
    from dsfc.diagnostics.catalogue import NoReport
    from dsfc.diagnostics.report import DiagnosticError
    from dsfc.source import NOWHERE

    return DiagnosticError((NoReport(NOWHERE, mixer=mixer, problem=problem, hint=hint),))


@contextmanager
def told(steps: int) -> Iterator[Callable[[str], None]]:
    """Shows what is computed, as a bar of so many steps; nothing where nobody looks.

    Args:
        steps: how many things are told.
    """
    with progress("analysing") as shown:
        done = 0

        def tell(what: str) -> None:
            nonlocal done
            if shown is not None:
                shown(done, max(steps, done), what)
            done += 1

        yield tell


def refuse_existing(out: str | None, name: str, force: bool) -> None:
    """Refuses a file that exists before anything is computed for it.

    Raises:
        DiagnosticError: E-FILE.
    """
    from dsfc.cli.output import target
    from dsfc.diagnostics.file_error import file_error

    path = target(out or ".", name)
    if os.path.exists(path) and not force:
        raise file_error(path, "already exists; --force replaces it")


def write(out: str | None, name: str, text: str, force: bool) -> None:
    """Writes a report, and says where.

    Raises:
        DiagnosticError: E-FILE; the file exists, or cannot be written.
    """
    from dsfc import files
    from dsfc.cli.output import create, target
    from dsfc.diagnostics.file_error import file_error
    from dsfc.diagnostics.render import printable

    path = target(out or ".", name)
    if force and os.path.exists(path):
        try:
            files.replace(path, text.encode())
        except OSError as e:
            raise file_error(path, e) from None
    else:
        create(path, text)
    click.echo(printable(f"written: {path}"))


def _given(
    compilation: Compilation,
    sizes: dict[str, int],
    tokens: int | None,
    module: Path | None,
    weights: Path | None,
    data: Path | None,
    atlas: Path | None,
) -> Given:
    """The weights and the inputs that options give beside the spec."""
    from dsfc.analysis.analysis import TOKENS
    from dsfc.report.subject import Given

    said, inputs, params = [], None, None
    if weights is not None:
        try:
            from dsfc.api.trained import trained
        except ImportError as e:
            if e.name != "torch":
                raise
            raise click.UsageError(
                "--weights reads what torch saved: install torch first"
            ) from None
        kept = trained(compilation, weights, module)
        params = kept.params
        sizes = _agreeing(compilation, sizes, dict(kept.sizes), "the weights")
        said.append(f"Trained parameters are those of {weights.name}.")
    if data is not None:
        from dsfc.analysis.data import WrongData, read_tokens

        try:
            read = read_tokens(data, compilation.mixer)
        except WrongData as e:
            raise no_report(compilation.name, str(e)) from None
        sizes = _agreeing(compilation, sizes, dict(read.sizes), "the data")
        length = len(next(iter(read.inputs.values())))
        inputs = {n: x[: tokens or TOKENS] for n, x in read.inputs.items()}
        tokens = min(length, tokens or TOKENS)
        said.append(f"Tokens are the first {tokens} of {data.name}.")
    relatives = None if atlas is None else _relatives(compilation.name, atlas)
    return Given(sizes, params, inputs, " ".join(said), relatives, tokens or TOKENS)


def _agreeing(
    compilation: Compilation, sizes: dict[str, int], stated: dict[str, int], what: str
) -> dict[str, int]:
    """Sizes with those that a file has; they must not differ."""
    for name, size in stated.items():
        if sizes.get(name, size) != size:
            problem = f"{what} have {name} = {size}, and {name} = {sizes[name]} was given"
            raise no_report(compilation.name, problem)
    return sizes | stated


def _relatives(name: str, path: Path) -> tuple[str, ...]:
    """The statements of an atlas about a mixer."""
    from dsfc import files
    from dsfc.atlas.report import statements_about

    try:
        return statements_about(name, files.read(path))
    except OSError as e:
        raise no_report(name, f"{path} cannot be read: {e.strerror or e}") from None
    except ValueError as e:
        raise no_report(name, f"{path} is no atlas: {e}") from None
