"""Follows every link of the built pages and of the Markdown files beside the code.

A link inside goes to a file that is there, and its anchor to an element of it. A link outside is a
well-formed address, and of a paper one with an identifier of its form; whether somebody answers is
not asked.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from dsfc.papers import FORMS

ROOT = Path(__file__).resolve().parent.parent
MARKDOWN = ("*.md", "benchmarks/**/*.md", "examples/**/*.md", "tests/*.md")
_FENCE = re.compile(r"^(```+).*?^\1$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"(`+).+?\1", re.DOTALL)
_LINK = re.compile(r"\]\(<?([^()\s<>]*(?:\([^()\s]*\)[^()\s]*)*)>?(?: \"[^\"]*\")?\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


@dataclass
class Page(HTMLParser):
    """The links of a page, and what they may go to.

    Attributes:
        links: as written, with their lines.
        anchors: identifiers of elements.
    """

    links: list[tuple[int, str]] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keeps what an element links to, and its identifier."""
        for name, value in attrs:
            if name == "id" and value:
                self.anchors.add(value)
            elif name in ("href", "src") and value:
                self.links.append((self.getpos()[0], value))


@cache
def html(file: Path) -> Page:
    """Returns the links and anchors of a built page."""
    page = Page()
    page.feed(file.read_text(encoding="utf-8"))
    return page


@cache
def markdown(file: Path) -> Page:
    """Returns the links and headings of a Markdown file, as code hosts show it."""
    page, text = Page(), _FENCE.sub(lambda m: "\n" * m[0].count("\n"), file.read_text("utf-8"))
    for heading in _HEADING.findall(text):
        page.anchors.add(re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-"))
    plain = _CODE.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
    for m in _LINK.finditer(plain):
        page.links.append((plain.count("\n", 0, m.start()) + 1, m[1]))
    return page


def _misnamed(link: str) -> bool:
    """Whether an address is that of a paper, under an identifier that no paper has."""
    return any(
        kept and link.startswith(kept) and not form.fullmatch(unquote(link[len(kept) :]))
        for form, _, kept in FORMS.values()
    )


def problem(file: Path, link: str) -> str | None:
    """Returns what is wrong with a link of a file, or None.

    Args:
        file: the page it stands in.
        link: as written.
    """
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        if parts.scheme in ("mailto", "data"):
            return None
        if parts.scheme not in ("http", "https") or "." not in parts.netloc or " " in link:
            return "not an address"
        return "not an identifier of a paper" if _misnamed(link) else None
    target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
    if not target.exists():
        return "no such file"
    if parts.fragment and target.suffix in (".html", ".md"):
        known = (html if target.suffix == ".html" else markdown)(target).anchors
        if unquote(parts.fragment) not in known:
            return "no such anchor"
    return None


def problems(files: list[Path]) -> Iterator[str]:
    """Yields a line for each link that goes nowhere.

    Args:
        files: built pages or Markdown files.
    """
    for file in files:
        page = html(file) if file.suffix == ".html" else markdown(file)
        for line, link in page.links:
            wrong = problem(file, link)
            if wrong is not None:
                yield f"{file}:{line}: {link}: {wrong}"


def main(built: Path) -> int:
    """Returns how many links go nowhere; each is printed.

    Args:
        built: the folder of the built pages.
    """
    pages = sorted(p.resolve() for p in built.rglob("*.html"))
    beside = sorted(p for pattern in MARKDOWN for p in ROOT.glob(pattern))
    found = list(problems([*pages, *beside]))
    print("\n".join(found), end="\n" if found else "")
    count = sum(len(html(p).links) for p in pages) + sum(len(markdown(p).links) for p in beside)
    print(f"{count} links of {len(pages)} pages and {len(beside)} files, {len(found)} broken")
    return len(found)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])) > 0)
