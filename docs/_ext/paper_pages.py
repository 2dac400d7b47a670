"""The papers that shipped specs name: as Markdown, and whether they are named alike."""

from __future__ import annotations

import re
from collections.abc import Mapping

from dsfc.api.locate import spec_names
from dsfc.api.pipeline import read
from dsfc.api.shipped import shipped_papers
from dsfc.papers import Paper
from dsfc.syntax import ast
from dsfc.syntax.letters import unfold

Cited = tuple[tuple[Paper, ...], tuple[str, ...]]
"""The papers that a spec names, and what its definitions say they are of."""


def reference(paper: Paper, whole: bool = False) -> str:
    """Returns a paper as Markdown, its title in italics, its identifier a link.

    Args:
        paper: what to name.
        whole: leave out the place in it.
    """
    kept = paper.identifier
    link = "" if kept is None else f", [{kept}]({kept.link})"
    place = "" if whole or paper.place is None else f", {paper.place}"
    return f"{paper.named} {paper.year}: *{paper.title}*{link}{place}"


def references() -> str:
    """Returns the papers that specs name by year, each with the specs that do, as a list."""
    specs: dict[tuple[int, str], tuple[Paper, list[str]]] = {}
    for name in spec_names():
        for p in shipped_papers(name):
            specs.setdefault((p.year, p.named + p.title), (p, []))[1].append(name)
    return "".join(
        f"- {reference(p, whole=True)}: "
        + ", ".join(f"[{name}](mixers/{name}.md)" for name in citing)
        + "\n"
        for _, (p, citing) in sorted(specs.items())
    )


def cited() -> dict[str, Cited]:
    """Returns of each shipped spec its papers, and what its definitions say they are of."""
    return {name: (shipped_papers(name), _labels(name)) for name in spec_names()}


def _labels(name: str) -> tuple[str, ...]:
    return tuple(label for _, label in labelled(name))


def labelled(name: str) -> tuple[tuple[str, str], ...]:
    """Returns the definitions of a shipped spec that say where in a paper they stand, and where.

    Args:
        name: of the spec.
    """
    items = (item for unit in read(name).spec.units for item in unit.items)
    labels = (i for i in items if isinstance(i, ast.Def | ast.FunDef | ast.Flow))
    return tuple((unfold(i.name.text), i.provenance.text) for i in labels if i.provenance)


def wrong(specs: Mapping[str, Cited]) -> list[str]:
    """Returns what is wrong with how specs name their papers, a line for each.

    Args:
        specs: of each its papers, and what its definitions say they are of.
    """
    out: list[str] = []
    known: dict[str, tuple[str, int, str]] = {}
    for name, (papers, labels) in specs.items():
        if not papers:
            out.append(f"{name} names no paper")
        for p in papers:
            own = (p.named, p.year, p.title)
            if known.setdefault(str(p.identifier or p.title), own) != own:
                out.append(f"{name} names {p.identifier or p.title} as another spec does not")
        short = {s for p in papers for s in (p.short, f"{p.named} {p.year}")}
        for label in labels:
            of = re.match(r"[^\d§]+ \d{4}\b", label)
            if of is not None and of[0] not in short:
                out.append(f"{name} has a definition of {of[0]}, which it does not name")
    return out
