"""`dsfc new`: a commented spec to start from."""

from __future__ import annotations

from pathlib import Path

import click
from click.shell_completion import CompletionItem

from dsfc.cli.options import mistakes_option
from dsfc.cli.usage import examples

FORMS = ("recurrence", "attention", "kernel", "flow", "variant", "modifier")
"""The files of `dsfc/starters`, the plainest first."""


class _Form(click.types.StringParamType):
    """A starter, or a shipped spec."""

    name = "form"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Returns the word if there is such a starter or spec."""
        from dsfc.api.locate import spec_names
        from dsfc.diagnostics.report import nearest

        known = (*FORMS, *spec_names())
        if value not in known:
            near = nearest(value, known)
            hint = f"did you mean {near}?" if near else "`dsfc list` shows the shipped mixers"
            self.fail(f"{value!r} is no form and no shipped mixer: {hint}", param, ctx)
        return value

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Returns the forms and shipped specs that begin so."""
        from dsfc.api.locate import spec_names

        return [CompletionItem(n) for n in (*FORMS, *spec_names()) if n.startswith(incomplete)]


@click.command(
    cls=examples(
        ("dsfc new mine", "a recurrence, in mine.dsf"),
        ("dsfc new mine --form attention", "a sum over the past"),
        ("dsfc new mine --form gla", "the text of a shipped mixer"),
        ("dsfc new mine -o -", "to standard output"),
    ),
    short_help="Write a commented spec to start from.",
)
@click.argument("name")
@click.option(
    "--form",
    type=_Form(),
    metavar=f"[{'|'.join(FORMS)}|MIXER]",
    default=FORMS[0],
    show_default=True,
    help="recurrence is a state and its update, attention a sum over the past, kernel a function "
    "of the lag, flow a differential equation, variant a change to a shipped mixer, modifier a "
    "change to one definition of any mixer. MIXER is the text of a shipped mixer under the new "
    "name.",
)
@click.option(
    "-o",
    "--out",
    help="File to write, folder to write into (a new one with a slash behind it), or - for standard"
    " output.  [default: ./NAME.dsf]",
)
@mistakes_option
def new(name: str, form: str, out: str | None) -> None:
    """Write a commented spec to start from; each form compiles as it is.

    NAME is the name of the mixer. An existing file is not overwritten.
    """
    from dsfc.cli.output import create, target
    from dsfc.diagnostics.render import printable

    text = _text(name, form)
    if out == "-":
        click.echo(text, nl=False)
        return
    path = target(out or ".", f"{name}.dsf")
    create(path, text)
    click.echo(printable(f"written: {path}"))
    click.echo(printable(f"  {_next(path)}"))


def _next(path: Path) -> str:
    """What to do with a new file; one without an output cannot be compiled by itself."""
    from dsfc.api.pipeline import read
    from dsfc.diagnostics.report import DiagnosticError

    text = read(str(path))
    names = text.mixers
    try:
        compiles = bool(names) and all(text.compilation(name).system is not None for name in names)
    except DiagnosticError:
        compiles = False
    if compiles:
        return f"dsfc check {path}, then dsfc compile {path}"
    use = "extend it in a mixer that defines `y`" if names else "apply it in a mixer with `use`"
    return f"dsfc check {path}, then {use}"


def _text(name: str, form: str) -> str:
    """The text of a starter, or of a shipped spec, under another name."""
    import re
    from importlib import resources

    from dsfc.api.locate import shipped_file
    from dsfc.diagnostics.report import DiagnosticError
    from dsfc.source import Source
    from dsfc.syntax.parse import parse

    if form in FORMS:
        starter = resources.files("dsfc.starters") / f"{form}.dsf"
        text = re.sub(r"\bmine\b", lambda _: name, starter.read_text(encoding="utf-8"))
    else:
        shipped = shipped_file(form)
        assert shipped is not None, "the option knows the names"
        head = rf"(?m)^((?:mixer|modifier) ){form}\b"
        text = re.sub(head, lambda m: m[1] + name, shipped.read_text(encoding="utf-8"))
    try:
        called = parse(Source("<new>", text)).units[0].name.text
    except DiagnosticError:
        called = None
    if called is None or not re.fullmatch(r"\w+", name):
        raise click.BadParameter(
            "a name is letters, digits and _, a letter first, and no word of the language"
        )
    return text
