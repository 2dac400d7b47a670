"""Errata of papers, from the data of the tests: a page of all, and those of one mixer."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import paper_pages

from dsfc.api.locate import shipped_names
from dsfc.api.shipped import shipped_papers
from dsfc.papers import Paper

DATA = Path(__file__).parents[2] / "tests" / "errata" / "errata.toml"

_SHOWN: Mapping[str, str] = {
    "types": "As printed it is no spec: the compiler says [{code}](errors.md#{anchor}).",
    "equiv": "The printed mixer is refuted against the one that is meant, by a point; the "
    "corrected one is proved equal to it.",
    "claim": "`claim {claim}` is refuted of the printed mixer, by a point, and proved of the "
    "corrected one.",
    "script": "Arithmetic on a small example decides it: what is printed does not hold on it, what "
    "is right does.",
    "none": "No test decides it. {why}",
}
"""Lane of an erratum → how it is shown."""


@dataclass(frozen=True)
class Erratum:
    """A row of the data, with its paper.

    Attributes:
        paper: that has it.
        row: as the file has it.
    """

    paper: Paper
    row: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Its identifier, such as `D06`."""
        return str(self.row["id"])

    @property
    def said(self) -> str:
        """The erratum in a sentence: the subject, what is printed of it, and what is right."""
        printed, right = self.row["says"]
        about = self.row["about"]
        return f"{about[0].upper()}{about[1:]}: printed is *{printed}*; right is *{right}*."

    @property
    def shown(self) -> str:
        """How the erratum is shown."""
        row = {**self.row, "anchor": str(self.row.get("code", "")).lower()}
        return _SHOWN[row["lane"]].format(**row)

    @property
    def forms(self) -> str:
        """Both forms as specs; empty where they are none."""
        if "printed" not in self.row:
            return ""
        parts = [f"# {k}\n{_lines(self.row[k])}" for k in ("printed", "corrected")]
        return "```dsf\n" + "\n\n".join(parts) + "\n```"


def _lines(items: str) -> str:
    """Items of a spec, one a line."""
    return "\n".join(line.strip() for line in re.split(r";(?![^(]*\))", items))


@cache
def errata() -> tuple[Erratum, ...]:
    """Returns all errata by paper and number."""
    data = tomllib.loads(DATA.read_text(encoding="utf-8"))
    named = [paper for name in shipped_names() for paper in shipped_papers(name)]
    papers = {
        letter: next(p for p in named if key in (str(p.identifier), p.title))
        for letter, key in data["papers"].items()
    }
    rows = sorted(data["row"], key=lambda r: ([*papers].index(r["id"][0]), r["id"]))
    return tuple(Erratum(papers[row["id"][0]], row) for row in rows)


def of_spec(name: str) -> str:
    """Returns what is wrong in print of a mixer, as a list; empty where nothing is known.

    Args:
        name: of the spec.
    """
    return "\n".join(
        f"- {e.paper.short}, {e.row['where']}. {e.said} [{e.name}](../errata.md#{e.name.lower()})"
        for e in errata()
        if name in e.row.get("specs", ())
    )


def page() -> str:
    """Returns the page below its title."""
    return "\n\n".join(_sections()) + "\n"


def _sections() -> Iterator[str]:
    for paper in dict.fromkeys(e.paper.title for e in errata()):
        own = [e for e in errata() if e.paper.title == paper]
        yield f"## {own[0].paper.short}"
        yield f"{paper_pages.reference(own[0].paper, whole=True)}."
        for e in own:
            yield f"### {e.name}"
            specs = ", ".join(f"[{s}](mixers/{s}.md)" for s in e.row.get("specs", ()))
            about = f" Of {specs}." if specs else ""
            where = e.row["where"]
            yield f"{where[0].upper()}{where[1:]}. {e.said} {e.shown}{about}"
            if e.forms:
                yield e.forms
