from __future__ import annotations

from pathlib import Path

import pytest

from dsfc.language_server.document import Document, document
from dsfc.language_server.references import references
from dsfc.language_server.workspace import Workspace
from dsfc.mixer.library import Library
from dsfc.source import Source

BASE = "mixer base {\n  dims d\n  input u : d\n  param a : d\n  z = a * u\n  y = z\n}\n"
TOP = "mixer top extends base {\n  z = 2 * a * u\n}\n"


def places(document: Document, offset: int, **options: bool) -> list[tuple[str, int, int]]:
    found = references(document, offset, **options)
    return [(Path(span.source.name).name, span.line, span.column) for span in found]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "base.dsf").write_text(BASE, encoding="utf-8")
    (tmp_path / "top.dsf").write_text(TOP, encoding="utf-8")
    other = BASE.replace("base", "other")
    (tmp_path / "other.dsf").write_text(other, encoding="utf-8")
    (tmp_path / "broken.dsf").write_text("mixer broken extends base {", encoding="utf-8")
    return tmp_path


def opened(file: Path, text: str | None = None) -> Document:
    source = Source(str(file), file.read_text(encoding="utf-8") if text is None else text)
    return document(source, Library(folder=file.parent))


def test_a_name_is_found_in_its_base_and_in_what_extends_that(folder: Path) -> None:
    top = opened(folder / "top.dsf")
    here = places(top, TOP.index("a * u"))
    assert here == [("base.dsf", 4, 9), ("base.dsf", 5, 7), ("top.dsf", 2, 11)]
    base = opened(folder / "base.dsf")
    assert places(base, BASE.index("a : d")) == here
    assert places(base, BASE.index("a : d"), introduced=False) == here[1:]
    z = [("base.dsf", 5, 3), ("base.dsf", 6, 7), ("top.dsf", 2, 3)]
    assert places(top, TOP.index("z =")) == z
    assert places(top, TOP.index("z ="), introduced=False) == z[1:2]


def test_a_mixer_is_found_where_it_is_extended(folder: Path) -> None:
    found = [("base.dsf", 1, 7), ("top.dsf", 1, 19)]
    assert places(opened(folder / "base.dsf"), 8) == found
    assert places(opened(folder / "top.dsf"), TOP.index("base")) == found


def test_a_name_of_a_shipped_base_is_found_there_too(open_text) -> None:
    text, at = open_text("mixer m extends qkv {\n  y = ‸q · k\n}\nmixer n {\n  q = 1\n}\n")
    qkv = (Path(__file__).parents[2] / "specs" / "qkv.dsf").read_text(encoding="utf-8")
    line = qkv[: qkv.index("  q = ")].count("\n") + 1
    assert sorted(places(text, at)) == [("<text>", 2, 7), ("qkv.dsf", line, 3)]


def test_local_names_are_those_of_their_binder_and_words_those_of_the_text(open_text) -> None:
    text = "mixer m extends qkv {\n  f(a) = ‸a * exp(a)\n  g(a) = exp(a)\n  y = f(q) + g(q)\n}\n"
    it, at = open_text(text)
    assert places(it, at) == [("<text>", 2, 5), ("<text>", 2, 10), ("<text>", 2, 18)]
    assert places(it, at, introduced=False) == [("<text>", 2, 10), ("<text>", 2, 18)]
    word = it.source.text.index("exp")
    assert places(it, word) == [("<text>", 2, 14), ("<text>", 3, 10)]
    assert places(it, it.source.text.index("*")) == []


def test_a_text_with_a_mistake_is_read_as_far_as_it_can_be(folder: Path) -> None:
    text = f"mixer m extends {{ = }}\n{TOP.replace('}', '  w = * a')}\n"
    top = opened(folder / "top.dsf", text)
    assert not top.parsed
    found = [("base.dsf", 4, 9), ("base.dsf", 5, 7), ("top.dsf", 3, 11)]
    assert places(top, text.index("a * u")) == found


def test_an_open_text_stands_for_its_file(folder: Path) -> None:
    workspace = Workspace()
    workspace.change(str(folder / "base.dsf"), "\n" + BASE)
    top = workspace.change(str(folder / "top.dsf"), TOP)
    found = references(top, TOP.index("a * u"), workspace.specs())
    assert [span.line for span in found] == [5, 6, 2]
