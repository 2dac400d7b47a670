"""The gallery of mixers: a page for each shipped spec, made when these pages are built."""

from __future__ import annotations

from pathlib import Path

import errata
import mixer_pages
import paper_pages
from dsfc_docs import Generated
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

from dsfc.api.locate import spec_names

FOLDER = "reference/mixers"
"""Where the pages stand; not under version control, since they hold a title and a directive."""


class MixerPage(Generated):
    """What the compiler says of one shipped spec."""

    required_arguments = 1

    def markdown(self) -> str:
        """Writes the page below its title."""
        return mixer_pages.page(self.arguments[0])


class MixerTable(Generated):
    """All shipped specs by structure class."""

    def markdown(self) -> str:
        """Writes the tables and the papers."""
        return f"{mixer_pages.table()}\n## Papers\n\n{paper_pages.references()}"


class ErrataPage(Generated):
    """All errata, by paper."""

    def markdown(self) -> str:
        """Writes the page below its title."""
        return errata.page()


class KernelTable(Generated):
    """Which calls of the shipped mixers run in kernels, and why torch runs the others."""

    def markdown(self) -> str:
        """Writes the table and the reasons."""
        return mixer_pages.kernels()


def _pages(app: Sphinx) -> None:
    """Gives every spec a page, and takes away those of specs that are gone.

    Raises:
        ExtensionError: specs do not name their papers, or not alike.
    """
    folder = Path(app.srcdir) / FOLDER
    folder.mkdir(exist_ok=True)
    wrong = paper_pages.wrong(paper_pages.cited())
    if wrong:
        raise ExtensionError("\n".join(wrong))
    titles = {n: mixer_pages.entry(n).title for n in spec_names()}
    wanted = {f"{n}.md": _source(n, title) for n, title in titles.items()}
    for old in folder.glob("*.md"):
        if old.name not in wanted:
            old.unlink()
    for file, text in wanted.items():
        (folder / file).write_text(text, encoding="utf-8")
    # Pages are read by processes that start as copies of this one: what the table and the pages of
    # the mixers both ask is computed here, once.
    mixer_pages.table()


def _source(name: str, title: str) -> str:
    """The source of a page."""
    return f"# {title}\n\n```{{mixer}} {name}\n`dsfc explain {name}` says what it is.\n```\n"


def setup(app: Sphinx) -> dict[str, bool]:
    """Registers the directives, and makes the pages before they are read."""
    app.add_directive("mixer", MixerPage)
    app.add_directive("mixer-table", MixerTable)
    app.add_directive("kernel-table", KernelTable)
    app.add_directive("errata", ErrataPage)
    app.connect("builder-inited", _pages)
    return {"parallel_read_safe": True}
