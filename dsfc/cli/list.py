"""`dsfc list`: the shipped specs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from dsfc.cli.colours import heading
from dsfc.cli.options import format_option
from dsfc.cli.process import bounded

if TYPE_CHECKING:
    from dsfc.api.shipped import Shipped


@click.command("list", short_help="List the shipped mixers.")
@format_option("the list")
def list_command(form: str) -> None:
    """List the shipped mixers by the class of their transition, and the blocks.

    A line has the name of a spec, its title, its paper, how many numbers its state holds, and which
    backends have kernels for all of it. The names may stand wherever a command takes a SPEC.
    """
    from dsfc.api.locate import spec_names

    specs = []
    for name in spec_names():
        with bounded(f"list {name}"):
            from dsfc.api.shipped import shipped_line

            specs.append(shipped_line(name))
    if form == "json":
        import json
        from dataclasses import asdict

        click.echo(json.dumps({"format": 1, "specs": [asdict(s) for s in specs]}, indent=1))
    else:
        click.echo(_text(specs), nl=False)


def _text(specs: Iterable[Shipped]) -> str:
    """The list for people: mixers by class, then what mixers are made of."""
    from dsfc.api.shipped import Kind

    titles = {
        Kind.BLOCK: "blocks: mixers with the convolutions, gates, norms and maps of their models",
        Kind.BASE: "to extend: mixer mine extends …",
        Kind.MODIFIER: "to modify a mixer with",
        Kind.DESCRIBED: "described, but not linear in their state: they do not compile",
    }
    groups: dict[str, list[Shipped]] = {}
    for s in sorted(specs, key=lambda s: (list(Kind).index(s.kind), s.structure, s.name)):
        groups.setdefault(titles.get(s.kind, s.structure), []).append(s)
    lines: list[str] = []
    for title, group in groups.items():
        lines += ["", heading(title)]
        rows = [(s.name, s.title, s.papers[0].short, s.state, ", ".join(s.kernels)) for s in group]
        widths = [max(len(row[k]) for row in rows) for k in range(5)]
        for row in rows:
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            lines.append(f"  {'  '.join(cells)}".rstrip())
    head = "name, title, paper, numbers that the state holds, targets with kernels for all of it"
    return "\n".join([head, *lines, "", "dsfc show NAME, dsfc compile NAME", ""])
