"""`dsfc check`: everything that is wrong with specs, and what each mixer is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from dsfc.cli.options import format_option
from dsfc.cli.process import bounded

if TYPE_CHECKING:
    from dsfc.claims.verdict import Decided
    from dsfc.diagnostics.report import Diagnostic
    from dsfc.pipeline import Compilation, SpecText
    from dsfc.source import Span
    from dsfc.system.ir import ReadOut


@dataclass(frozen=True, slots=True)
class Mixer:
    """What `check` says of one mixer.

    Attributes:
        name: the mixer.
        title: its structure class; None for a base without output.
        refusal: why this version cannot compile it, or None.
        claims: its claims with what was found.
    """

    name: str
    title: str | None
    refusal: str | None
    claims: tuple[Decided, ...] = ()


@dataclass(frozen=True, slots=True)
class Checked:
    """What `check` says of one spec.

    Attributes:
        spec: as the user gave it.
        source: what its diagnostics call it.
        mixers: those that derive.
        diagnostics: errors and notes, in the order of the text.
    """

    spec: str
    source: str
    mixers: tuple[Mixer, ...]
    diagnostics: tuple[Diagnostic, ...]

    @property
    def errors(self) -> int:
        """How many of the diagnostics are errors."""
        return sum(d.severity == "error" for d in self.diagnostics)


@click.command(short_help="Say everything that is wrong with specs.")
@click.argument("specs", nargs=-1, required=True, metavar="SPEC...")
@format_option("the diagnostics; short is one line for each", "short", "sarif")
@click.option("--strict", is_flag=True, help="Take a claim that is not decided for an error.")
@click.pass_context
def check(ctx: click.Context, specs: tuple[str, ...], form: str, strict: bool) -> None:
    """Check specs: parse, type, derive and classify every mixer in them, decide their claims.

    All mistakes of a text are listed, each with its place. A claim is proved, refuted at a point
    where it was executed, which is an error, or not decided, which says what stood in the way. Exit
    code 1 if there is an error.
    """
    found = []
    for spec in specs:
        with bounded(f"check {spec}"):
            found.append(_checked(spec, strict))
        if form in ("human", "short"):
            for line in (_human if form == "human" else _short)(found[-1]):
                click.echo(line)
    if form == "json":
        click.echo(_json(found))
    elif form == "sarif":
        from dsfc.diagnostics.sarif import to_sarif

        click.echo(to_sarif(d for item in found for d in item.diagnostics))
    elif form == "human":
        click.echo(_summary(found))
    ctx.exit(1 if any(item.errors for item in found) else 0)


def _checked(spec: str, strict: bool) -> Checked:
    from dsfc.diagnostics.catalogue import WhichMixer
    from dsfc.diagnostics.report import DiagnosticError, defined, in_order
    from dsfc.pipeline import read

    try:
        text = read(spec)
    except DiagnosticError as e:
        return Checked(spec, spec, (), e.diagnostics)
    if not text.spec.units:
        nothing = WhichMixer(text.spec.span, problem="the text defines no mixer", known=defined(()))
        return Checked(spec, spec, (), (nothing,))
    mixers: list[Mixer] = []
    diagnostics: list[Diagnostic] = []
    for name in text.mixers:
        mixer, said = _mixer(text, name, strict)
        diagnostics += said
        if mixer is not None:
            mixers.append(mixer)
    return Checked(spec, text.spec.span.source.name, tuple(mixers), in_order(diagnostics))


def _mixer(text: SpecText, name: str, strict: bool) -> tuple[Mixer | None, tuple[Diagnostic, ...]]:
    """What is to be said of one mixer of a text."""
    from dsfc.decision import claims as decided
    from dsfc.diagnostics.catalogue import NoOutput
    from dsfc.diagnostics.report import DiagnosticError

    it = text.compilation(name)
    try:
        title, claims = it.structure.title, decided(it)
    except DiagnosticError as e:
        if all(isinstance(d, NoOutput) for d in e.diagnostics):
            return Mixer(name, None, "it has no output `y`; it is a base for others"), ()
        return None, e.diagnostics
    return Mixer(name, title, _refusal(it), claims), (*_claims(claims, strict), *_notes(it))


def _refusal(it: Compilation) -> str | None:
    from dsfc.diagnostics.report import DiagnosticError

    try:
        it.plan  # noqa: B018 - made to see whether it can be
    except DiagnosticError as e:
        return "; ".join(d.message for d in e.diagnostics)
    return None


def _notes(it: Compilation) -> Iterator[Diagnostic]:
    from dsfc.diagnostics.catalogue import CacheNote
    from dsfc.source import NOWHERE
    from dsfc.system.ir import Cache
    from dsfc.system.traverse import parts

    for tree, span in _read_outs(it):
        for node in parts(tree):
            if isinstance(node, Cache):
                yield CacheNote(span or it.mixer.span or NOWHERE, why=node.why)


def _claims(claims: tuple[Decided, ...], strict: bool) -> Iterator[Diagnostic]:
    """An error for each claim that is refuted, a note for each that is not decided."""
    from dsfc.claims.verdict import Refuted, Unknown
    from dsfc.diagnostics.catalogue import ClaimNote, ClaimOpen, ClaimRefuted
    from dsfc.source import NOWHERE

    for it in claims:
        span, text = it.statement.span or NOWHERE, it.statement.text
        match it.verdict:
            case Refuted(shown, point):
                hint = f"the point: {point}" if point else None
                yield ClaimRefuted(span, claim=text, witness=shown, hint=hint)
            case Unknown(obstacle) if strict:
                yield ClaimOpen(span, claim=text, obstacle=obstacle)
            case Unknown(obstacle):
                yield ClaimNote(span, claim=text, obstacle=obstacle)


def _read_outs(it: Compilation) -> Iterator[tuple[ReadOut, Span | None]]:
    """The read-outs of a system, each with the place of its definition."""
    from dsfc.primitives.expr import Expr

    for stream in it.system.streams:
        if not isinstance(stream.value, Expr):
            yield stream.value, stream.span
    for output in it.system.outputs:
        definition = it.mixer.definition(it.mixer.output)
        yield output.value, None if definition is None else definition.span


def _human(item: Checked) -> Iterator[str]:
    from dsfc.diagnostics.render import printable, render

    verdict = click.style("ok", fg="green") if not item.errors else click.style("wrong", fg="red")
    yield f"{click.style(printable(item.spec), bold=True)}: {verdict}"
    for m in item.mixers:
        yield f"  {m.name}: {_what(m)}"
        for claim in _proved(m):
            yield printable(f"    proved {claim}")
    for d in item.diagnostics:
        if d.severity == "error":
            yield "\n" + render(d, colour=True)
        else:
            yield f"  {printable(f'{_place(d, item)}: {d.message}')}"


def _place(d: Diagnostic, item: Checked) -> str:
    """Line of a note; with the file, where the note is about a base that stands elsewhere."""
    own = d.span.source.name == item.source
    return f"line {d.span.line}" if own else str(d.span)


def _proved(m: Mixer) -> Iterator[str]:
    """The claims that are proved, with what proves them."""
    if m.claims:
        from dsfc.claims.verdict import Proved

        for it in m.claims:
            if isinstance(it.verdict, Proved):
                yield f"{it.statement.text}: {it.verdict.by}"


def _what(m: Mixer) -> str:
    from dsfc.diagnostics.render import printable

    parts = [] if m.title is None else [m.title]
    return printable("; ".join([*parts, m.refusal or "compiles"]))


def _short(item: Checked) -> Iterator[str]:
    from dsfc.diagnostics.render import printable

    for d in item.diagnostics:
        yield printable(f"{d.span}: {d.severity}: {d}")


def _json(found: list[Checked]) -> str:
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
                    "claims": [as_json(claim) for claim in m.claims],
                }
                for m in item.mixers
            ],
            "diagnostics": [as_dict(d) for d in item.diagnostics],
        }

    body = {"format": 1, "specs": [document(item) for item in found]}
    return json.dumps(body, ensure_ascii=False, indent=2)


def _summary(found: list[Checked]) -> str:
    errors = sum(item.errors for item in found)
    open_ = sum(d.code == "N-CLAIM" for item in found for d in item.diagnostics)
    proved = sum(1 for item in found for m in item.mixers for _ in _proved(m))
    parts = [_count(len(found), "spec"), _count(errors, "error")]
    if proved:
        parts.append(f"{_count(proved, 'claim')} proved")
    if open_:
        parts.append(f"{_count(open_, 'claim')} not decided")
    return ", ".join(parts)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
