"""`dsfc compare`: the reports of several mixers side by side."""

from __future__ import annotations

import click

from dsfc.cli.options import mistakes_option, sizes_of
from dsfc.cli.report import STEPS, drawing, refuse_existing, told, write
from dsfc.cli.spec import SpecWord, mixer_of


@click.command(short_help="Write several mixers side by side as one HTML file.")
@click.argument("specs", nargs=-1, required=True, type=SpecWord(), metavar="SPEC[:MIXER]...")
@click.option(
    "--size",
    "sizes",
    multiple=True,
    metavar="AXIS=SIZE,…",
    help="Sizes, such as d=32,n=8; each mixer takes those of its axes.",
)
@click.option("--tokens", type=click.IntRange(2, 1024), help="Tokens of a sequence.  [default: 64]")
@click.option("-o", "--out", help="The file, or its folder.  [default: compare.html]")
@click.option("--force", is_flag=True, help="Replace a file that exists.")
@mistakes_option
def compare(
    specs: tuple[str, ...], sizes: tuple[str, ...], tokens: int | None, out: str | None, force: bool
) -> None:
    """Write several mixers side by side as one HTML file that loads nothing.

    The page has what `dsfc report` says of each mixer, section by section, with memory, influence
    and frequency response of all in one chart. Parameters are those that the specs start from.
    """
    if len(specs) < 2:
        raise click.UsageError("give two SPECs or more; one alone is what `dsfc report` takes")
    chosen = sizes_of(sizes)
    with drawing(" and ".join(specs)):
        from dsfc.analysis.analysis import TOKENS
        from dsfc.report.page import comparison
        from dsfc.report.subject import Given, subject
    refuse_existing(out, "compare.html", force)
    compilations = [mixer_of(spec) for spec in specs]
    unknown = set(chosen) - {d.axis.name for c in compilations for d in c.system.axes}
    if unknown:
        raise click.UsageError(f"no mixer has an axis {sorted(unknown)[0]}")
    subjects = []
    with told(STEPS * len(specs)) as tell:
        for c in compilations:
            own = {d.axis.name for d in c.system.axes}
            fitting = {name: size for name, size in chosen.items() if name in own}
            subjects.append(subject(c, Given(fitting, tokens=tokens or TOKENS), tell))
        text = comparison(subjects)
    write(out, "compare.html", text, force)
