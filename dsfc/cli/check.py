"""`dsfc check`: everything that is wrong with specs, and what each mixer is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from dsfc.cli.colours import coloured, heading
from dsfc.cli.options import format_option, require_parallel_option, timeout_option
from dsfc.cli.process import bounded
from dsfc.cli.spec import SpecWord, spec_and_mixer, spec_files, spec_text, with_tree
from dsfc.cli.usage import examples
from dsfc.source import NOWHERE

if TYPE_CHECKING:
    from dsfc.api.check import Checked, CheckedMixer
    from dsfc.diagnostics.report import Diagnostic


@click.command(
    cls=examples(
        ("dsfc check mine.dsf", "all mistakes of a spec, or what its mixers are"),
        ("dsfc check specs --format short", "one line for each mistake below a folder"),
        ("dsfc check mine.dsf --strict", "undecided claims are errors, for CI"),
    ),
    short_help="List all mistakes in specs.",
)
@click.argument("specs", nargs=-1, required=True, type=SpecWord(), metavar="SPEC[:MIXER]|FOLDER...")
@format_option("the diagnostics", "short", "sarif")
@click.option("--strict", is_flag=True, help="Treat undecided claims as errors.")
@require_parallel_option
@timeout_option
@click.option("--exit-zero", is_flag=True, help="Exit with code 0 even if there are errors.")
@click.pass_context
def check(
    ctx: click.Context,
    specs: tuple[str, ...],
    form: str,
    strict: bool,
    require_parallel: bool,
    exit_zero: bool,
) -> None:
    """Check specs: parse, type, derive and classify every mixer in them, decide their claims.

    Lists every mistake with its place. A claim is proved, refuted at a point where the mixer was
    run (an error), or undecided (a note that gives the reason). SPEC may be a folder, which stands
    for all .dsf files below it, or - for standard input; bases are then read from the current
    folder. Exit code 1 if there is an error.
    """
    checks = []
    for spec in spec_files(specs):
        known: list[Checked] = []
        with bounded(f"check {spec}", salvage=partial(_salvaged, known, form)):
            checks.append(_checked(spec, strict, require_parallel, known.append))
        _shown(checks[-1], form)
    if form == "json":
        click.echo(_json(checks))
    elif form == "sarif":
        from dsfc.diagnostics.sarif import to_sarif

        click.echo(to_sarif(d for item in checks for d in item.diagnostics))
    elif form == "human":
        click.echo(_summary(checks))
    ctx.exit(1 if any(item.errors for item in checks) and not exit_zero else 0)


def _shown(item: Checked, form: str) -> None:
    if form in ("human", "short"):
        for line in (_human if form == "human" else _short)(item):
            click.echo(line)


def _salvaged(known: list[Checked], form: str) -> None:
    """Prints the claims decided before time was up; the diagnostic of that follows."""
    if known:
        _shown(known[-1], form)


def _checked(
    spec: str, strict: bool, require_parallel: bool, tell: Callable[[Checked], None]
) -> Checked:
    from dsfc.api.check import Checked, checked
    from dsfc.diagnostics.report import DiagnosticError
    from dsfc.syntax.parse import IllegalCharacters

    file, mixer = spec_and_mixer(spec)
    try:
        return checked(spec_text(file), spec, strict, require_parallel, tell, mixer)
    except IllegalCharacters as e:
        rest = checked(with_tree(file, e.spec), spec, only=mixer)
        return Checked(spec, rest.source, (), e.beside(rest.diagnostics))
    except DiagnosticError as e:
        return Checked(spec, spec, (), e.diagnostics)


def _human(item: Checked) -> Iterator[str]:
    from dsfc.diagnostics.render import printable, render

    spec, verdict = printable(item.spec), "wrong" if item.errors else "ok"
    yield coloured(f"{spec}: {verdict}").replace(spec, heading(spec), 1)
    for m in item.mixers:
        yield f"  {m.name}: {_what(m)}"
        for claim in _proved(m):
            yield printable(f"    proved {claim}")
    for d in item.diagnostics:
        if d.severity == "error":
            yield "\n" + render(d, colour=True)
        else:
            yield f"  {printable(f'{_place(d, item)}{d.message}')}"


def _place(d: Diagnostic, item: Checked) -> str:
    """Line of a note; with the file, where the note is about a base that stands elsewhere."""
    if d.span == NOWHERE:
        return ""
    own = d.span.source.name == item.source
    return f"line {d.span.line}: " if own else f"{d.span}: "


def _proved(m: CheckedMixer) -> Iterator[str]:
    """The claims that are proved, with what proves them."""
    if m.claims:
        from dsfc.claims.verdict import Proved

        for claim in m.claims:
            if isinstance(claim.verdict, Proved):
                yield f"{claim.statement.text}: {claim.verdict.by}"


def _what(m: CheckedMixer) -> str:
    from dsfc.diagnostics.render import printable

    parts = [] if m.title is None else [m.title]
    compiles = "compiles" if m.slow is None else f"compiles, recurrent only: {m.slow}"
    return printable("; ".join([*parts, m.refusal or compiles]))


def _short(item: Checked) -> Iterator[str]:
    from dsfc.diagnostics.render import render_short

    yield from map(render_short, item.diagnostics)


def _json(checks: list[Checked]) -> str:
    import json

    from dsfc.claims.report import as_json
    from dsfc.diagnostics.render import as_dict

    def document(item: Checked) -> dict[str, Any]:
        return {
            "spec": item.spec,
            "ok": not item.errors,
            "mixers": [
                {
                    "name": m.name,
                    "class": m.title,
                    "compiles": m.refusal is None,
                    "why_not": m.refusal,
                    "recurrent_only": m.slow,
                    "claims": [as_json(claim) for claim in m.claims],
                }
                for m in item.mixers
            ],
            "diagnostics": [as_dict(d) for d in item.diagnostics],
        }

    body = {"format": 1, "specs": [document(item) for item in checks]}
    return json.dumps(body, ensure_ascii=False, indent=2)


def _summary(checks: list[Checked]) -> str:
    errors = sum(item.errors for item in checks)
    open_ = sum(d.code == "N-CLAIM" for item in checks for d in item.diagnostics)
    proved = sum(1 for item in checks for m in item.mixers for _ in _proved(m))
    parts = [_count(len(checks), "spec"), _count(errors, "error")]
    if proved:
        parts.append(f"{_count(proved, 'claim')} proved")
    if open_:
        parts.append(f"{_count(open_, 'claim')} not decided")
    return ", ".join(parts)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
