"""A paper as a spec names it: authors, year, title, where it is kept, the place in it, its letters.

An identifier is checked by its form alone: whether there is such a paper no compiler can know.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from dsfc.latex_symbol import Symbol, parsed_symbol

OTHERS = "et al."
"""The words behind the last author of a list that goes on."""


YEARS = range(1600, 3000)
"""In which a paper may have appeared."""


class Register(StrEnum):
    """Who keeps a paper under its identifier, as a spec spells it."""

    ARXIV = "arXiv"
    DOI = "doi"
    URL = "url"


_MONTH = r"(?:0[1-9]|1[0-2])"
_ARXIV_BY_MONTH = rf"(?:0[7-9]|1[0-4]){_MONTH}\.\d{{4}}|(?:1[5-9]|[2-8]\d){_MONTH}\.\d{{5}}"
_ARXIV_BY_ARCHIVE = rf"[a-z]+(?:-[a-z]+)?(?:\.[A-Z]{{2}})?/(?:9\d|0[0-7]){_MONTH}\d{{3}}"
FORMS: Mapping[Register, tuple[re.Pattern[str], str, str]] = MappingProxyType(
    {
        Register.ARXIV: (
            re.compile(rf"(?a:(?:{_ARXIV_BY_MONTH}|{_ARXIV_BY_ARCHIVE})(?:v[1-9]\d*)?)"),
            "2312.06635",
            "https://arxiv.org/abs/",
        ),
        Register.DOI: (
            re.compile(r"(?a:10\.\d{4,9}(?:\.\d+)*/[\w.;()/:<>#\[\]+-]+)"),
            "10.1162/neco.1997.9.8.1735",
            "https://doi.org/",
        ),
        Register.URL: (
            re.compile(r"(?a:https://[\w-]+(?:\.[\w-]+)+(?:/[\w./?=&#%~+:-]*)?)"),
            "https://openreview.net/forum?id=P1TCHxJwLB",
            "",
        ),
    }
)
"""Register → what identifiers look like, an example, and what makes one an address.

Until 2007 identifiers of arXiv named the archive, as `cs/0112017`; since then they begin with year
and month, and have a number of four digits behind them, or five since 2015.
"""


_QUOTED = str.maketrans({sign: f"%{ord(sign):02X}" for sign in "()<>#[]"})


@dataclass(frozen=True, slots=True)
class Identifier:
    """Under what a paper is kept.

    Attributes:
        register: who keeps it.
        value: its name there, as written, such as `2312.06635`.
    """

    register: Register
    value: str

    @property
    def link(self) -> str:
        """The address that leads to the paper, without signs that end one in a text."""
        kept = FORMS[self.register][2]
        return kept + self.value.translate(_QUOTED) if kept else self.value

    def __str__(self) -> str:
        """The identifier as references print it: `arXiv:2312.06635`."""
        return self.value if self.register is Register.URL else f"{self.register}:{self.value}"


@dataclass(frozen=True, slots=True)
class Letter:
    """A letter that a paper has for a name of a spec.

    Attributes:
        name: in the spec, in ASCII; `i` is the index of the token.
        latex: the paper's symbol, without the index of the token.
    """

    name: str
    latex: str

    @property
    def symbol(self) -> Symbol:
        """The parts of the symbol.

        Raises:
            ValueError: it is not one, which no spec that was read has.
        """
        symbol = parsed_symbol(self.latex)
        if symbol is None:
            raise ValueError(f"`{self.latex}` is not one symbol of LaTeX")
        return symbol


@dataclass(frozen=True, slots=True)
class Paper:
    """One paper.

    Attributes:
        authors: family names in the order of the paper.
        others: whether there are more authors than those.
        year: in which it appeared.
        title: of the paper.
        identifier: None where it has none.
        place: where in the paper, such as `eq. 6`; None for the whole.
        letters: what the paper calls names of the spec, in the order of the text.
    """

    authors: tuple[str, ...]
    others: bool
    year: int
    title: str
    identifier: Identifier | None = None
    place: str | None = None
    letters: tuple[Letter, ...] = ()

    @property
    def short(self) -> str:
        """The reference in a text: `Gu and Dao 2023`, `Yang et al. 2024`."""
        if self.others or len(self.authors) > 2:
            return f"{self.authors[0]} {OTHERS} {self.year}"
        return f"{' and '.join(self.authors)} {self.year}"

    @property
    def located(self) -> str:
        """The reference in a text with the place: `Wang et al. 2025, eq. 6`."""
        return self.short if self.place is None else f"{self.short}, {self.place}"

    @property
    def named(self) -> str:
        """The authors as a spec writes them."""
        return ", ".join(self.authors) + (f" {OTHERS}" if self.others else "")

    @property
    def writable(self) -> bool:
        """Whether a spec can name it: its parts have the forms that they are read in."""
        kept = self.identifier
        return (
            parsed_authors(self.named) == (self.authors, self.others)
            and self.year in YEARS
            and bool(self.title.strip())
            and (kept is None or FORMS[kept.register][0].fullmatch(kept.value) is not None)
            and all(parsed_symbol(letter.latex) is not None for letter in self.letters)
            and len({letter.name for letter in self.letters}) == len(self.letters)
        )

    def __str__(self) -> str:
        """The reference in one line."""
        kept = "" if self.identifier is None else f", {self.identifier}"
        place = "" if self.place is None else f", {self.place}"
        return f"{self.named} {self.year}: {self.title}{kept}{place}"


def parsed_authors(text: str) -> tuple[tuple[str, ...], bool] | None:
    """Returns family names and whether there are others, None where a name is missing.

    Args:
        text: names with commas between them, `et al.` behind the last where the list goes on.
    """
    names = text.removesuffix(f" {OTHERS}")
    authors = tuple(name.strip() for name in names.split(","))
    return (authors, names != text) if all(authors) and OTHERS not in authors else None
