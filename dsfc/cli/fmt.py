"""`dsfc fmt`: specs in canonical form."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from dsfc.cli.options import mistakes_option
from dsfc.cli.process import bounded
from dsfc.cli.spec import STDIN, spec_files, standard_input


@click.command(short_help="Format specs.")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--check", "only_check", is_flag=True, help="Write nothing; exit 1 if anything would change."
)
@click.option("--diff", is_flag=True, help="Write nothing; print what would change.")
@click.option("--ascii", is_flag=True, help="Spell Greek letters and signs in ASCII.")
@mistakes_option
@click.pass_context
def fmt(
    ctx: click.Context, files: tuple[str, ...], only_check: bool, diff: bool, ascii: bool
) -> None:
    """Write specs in canonical form: one item a line, comments kept, numbers exact.

    FILE is a .dsf file, a folder (all .dsf files below it), or - for standard input, which is
    formatted to standard output. A file is written whole or not at all, and only if its text
    changes; a file with a syntax error is not changed.
    """
    from dsfc.cli.failure import DIAGNOSTICS, Mistakes
    from dsfc.diagnostics.render import printable
    from dsfc.diagnostics.report import DiagnosticError

    changed, mistakes = 0, Mistakes()
    paths = list(spec_files(files))
    for path in paths:
        try:
            with bounded(f"format {path}"):
                text, form = _forms(path, ascii)
        except DiagnosticError as e:
            mistakes.add(e.diagnostics)
            continue
        changed += text != form
        if diff:
            for line in _diff(path, text, form):
                click.echo(line, nl=False)
        elif only_check:
            if text != form:
                click.echo(printable(f"{path}: not in canonical form"))
        elif path == STDIN:
            click.echo(form, nl=False)
        elif text != form:
            try:
                _write(Path(path), form)
            except DiagnosticError as e:
                mistakes.add(e.diagnostics)
                continue
            click.echo(printable(f"{path}: formatted"))
    if not diff and paths != [STDIN]:
        click.echo(_summary(len(paths), changed, mistakes.count, only_check))
    ctx.exit(mistakes.end() or (DIAGNOSTICS if only_check and changed else 0))


def _forms(path: str, ascii: bool) -> tuple[str, str]:
    """The text of a file as it is, and in canonical form."""
    from dsfc.source import Source
    from dsfc.syntax.format import format_spec
    from dsfc.syntax.parse import parse
    from dsfc.syntax.read import read_source

    source = standard_input() if path == STDIN else read_source(Path(path))
    spec = parse(source)
    form = format_spec(spec, ascii=ascii)
    # Whatever went wrong in printing, a text that means something else is never written.
    if parse(Source(source.name, form)) != spec:
        raise AssertionError("the canonical form is another spec")
    return source.text, form


def _diff(path: str, text: str, form: str) -> Iterator[str]:
    from difflib import unified_diff

    from dsfc.diagnostics.render import printable

    name = printable("<stdin>" if path == STDIN else path)
    colours = {"+": "green", "-": "red", "@": "cyan"}
    before, after = text.splitlines(keepends=True), form.splitlines(keepends=True)
    for line in unified_diff(before, after, name, f"{name}, formatted"):
        shown = printable(line.rstrip("\r\n"))
        yield click.style(shown, fg=colours.get(line[:1])) + "\n"


def _write(path: Path, form: str) -> None:
    """Writes a file in place of the old one; a link stays one, and permissions stay."""
    import stat

    from dsfc import files
    from dsfc.diagnostics.file_error import file_error

    try:
        there = path.resolve(strict=True)
        mode = stat.S_IMODE(there.stat().st_mode)
        if not mode & stat.S_IWUSR:
            raise file_error(path, "it is read-only")
        files.replace(there, form.encode(), mode)
    except OSError as e:
        raise file_error(path, e) from None


def _summary(files: int, changed: int, failed: int, only_check: bool) -> str:
    """How many files were looked at, and what came of it."""
    parts = [f"{files} file" if files == 1 else f"{files} files"]
    parts.append(f"{changed} to format" if only_check else f"{changed} formatted")
    if failed:
        parts.append(f"{failed} not changed")
    return ", ".join(parts)
