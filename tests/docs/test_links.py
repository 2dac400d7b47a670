"""Links of Markdown files go somewhere, and the check that the build makes sees what does not."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def links() -> Iterator[ModuleType]:
    """What follows the links; the build runs it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(ROOT / "docs"), *sys.path])
        import links

        yield links


def test_links_of_files_beside_the_code_go_somewhere(links: ModuleType) -> None:
    files = [f for pattern in links.MARKDOWN for f in ROOT.glob(pattern)]
    assert {"README.md", "CONTRIBUTING.md", "SECURITY.md"} < {f.name for f in files}
    assert sum(len(links.markdown(f).links) for f in files) > 20
    assert list(links.problems(sorted(files))) == []


def test_links_of_sources_of_pages_go_somewhere(links: ModuleType) -> None:
    files = sorted(f for f in (ROOT / "docs").rglob("*.md") if "_build" not in f.parts)
    made = ("no such anchor", "reference/mixers")  # anchors of directives are seen in the build
    found = [p for p in links.problems(files) if not any(m in p for m in made)]
    assert len(files) > 40 and found == []


@pytest.mark.parametrize(
    ("link", "wrong"),
    [
        ("there.html", None),
        ("there.html#here", None),
        ("#top", None),
        ("https://example.org/a_(b)", None),
        ("nowhere.html", "no such file"),
        ("there.html#nowhere", "no such anchor"),
        ("#nowhere", "no such anchor"),
        ("https://arxiv.org/abs/2312.06635v2", None),
        ("https://doi.org/10.1162/neco.1997.9.8.1735", None),
        ("https://arxiv.org/abs/2313.06635", "not an identifier of a paper"),
        ("https://doi.org/neco.1997", "not an identifier of a paper"),
        ("https://example", "not an address"),
        ("htps://example.org", "not an address"),
    ],
)
def test_what_goes_nowhere_is_seen(
    link: str, wrong: str | None, links: ModuleType, tmp_path: Path
) -> None:
    (tmp_path / "there.html").write_text('<p id="here">', encoding="utf-8")
    page = tmp_path / "page.html"
    page.write_text(f'<h1 id="top">a</h1>\n<a href="{link}">b</a>', encoding="utf-8")
    want = [] if wrong is None else [f"{page}:2: {link}: {wrong}"]
    assert list(links.problems([page])) == want


def test_links_in_code_are_none(links: ModuleType, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    text = '# A b\n`[x](y.md)` [x](#a-b)\n```\n[x](z.md)\n```\n[gone](gone.md "t")\n'
    page.write_text(text, encoding="utf-8")
    assert list(links.problems([page])) == [f"{page}:6: gone.md: no such file"]
