from __future__ import annotations

from pathlib import Path

import pytest

from dsfc.language_server.document import Document, document
from dsfc.language_server.edits import applied
from dsfc.language_server.rename import Refused, rename
from dsfc.mixer.library import Library
from dsfc.source import Source

BASE = "mixer base {\n  dims d\n  input u : d\n  g = sigmoid(u)\n  y = (g) * u\n}\n"
TOP = "mixer top extends base {\n  g = tanh(u)\n}\n"
OTHER = "mixer other {\n  dims d\n  input u : d\n  g = u\n  y = g\n}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in {"base": BASE, "top": TOP, "other": OTHER}.items():
        (tmp_path / f"{name}.dsf").write_text(text, encoding="utf-8")
    return tmp_path


def opened(path: Path) -> Document:
    source = Source(str(path), path.read_text(encoding="utf-8"))
    return document(source, Library(folder=path.parent))


def renamed(it: Document, at: int, name: str) -> dict[str, str]:
    """The changed texts by the names of their files."""
    edits = rename(it, at, name)
    sources = {Path(e.span.source.name).name: e.span.source for e in edits}
    return {
        file: applied(source.text, [e for e in edits if e.span.source == source])
        for file, source in sources.items()
    }


def test_a_name_is_renamed_in_base_and_override_and_nowhere_else(folder: Path) -> None:
    top = opened(folder / "top.dsf")
    found = renamed(top, TOP.index("g ="), "gate")
    assert found == {
        "base.dsf": BASE.replace("g = s", "gate = s").replace("(g)", "(gate)"),
        "top.dsf": TOP.replace("g =", "gate ="),
    }
    base = opened(folder / "base.dsf")
    assert renamed(base, BASE.index("g)"), "gate") == found


def test_a_word_that_is_reserved_before_another_alone_is_a_name(folder: Path) -> None:
    top = opened(folder / "top.dsf")
    assert "layer = " in renamed(top, TOP.index("g ="), "layer")["top.dsf"]


def test_a_name_is_renamed_in_the_letters_of_papers(folder: Path) -> None:
    letters = '  paper "A", 2024, "T", letters u "x", g "f"\n'
    (folder / "top.dsf").write_text(TOP.replace("{\n", "{\n" + letters), encoding="utf-8")
    base = opened(folder / "base.dsf")
    found = renamed(base, BASE.index("g = s"), "gate")
    assert 'letters u "x", gate "f"' in found["top.dsf"]


@pytest.mark.parametrize(
    "name", ["u", "d", "y", "i", "first", "exp", "sum", "param", "2a", "a b", "", "w" * 99]
)
def test_clashes_and_reserved_words_are_refused(folder: Path, name: str) -> None:
    with pytest.raises(Refused):
        rename(opened(folder / "top.dsf"), TOP.index("g ="), name)


def refused(text: str, word: str, name: str = "fresh") -> str:
    it = document(Source("<text>", text), Library())
    with pytest.raises(Refused) as e:
        rename(it, text.index(word), name)
    return str(e.value)


def test_what_is_not_the_users_is_refused() -> None:
    assert "qkv.dsf" in refused("mixer m extends qkv { y = q }", "q }")
    assert "declared" in refused("mixer m extends qkv { y = exp(q) }", "exp")
    assert "word" in refused("mixer m extends qkv { y = q }", "y =")
    assert "another file" in refused("mixer m extends qkv { y = q }", "qkv")
    assert "syntax" in refused("mixer m extends qkv { y = q * }", "q *")


def test_a_name_that_a_modifier_reads_is_refused() -> None:
    text = (
        "modifier gated on x {\n  x = x * side\n}\nmixer m {\n  dims d\n  input u : d\n"
        "  side = tanh(u)\n  z = u\n  y = z\n  use gated on z\n}\n"
    )
    assert "gated" in refused(text, "side = t")


def test_local_names_and_units(open_text) -> None:
    text = "mixer m extends qkv {\n  f(a) = a * a\n  y = sum[j ≤ i](f(q) · k[j] * v[j])\n}\n"
    it, _ = open_text(text)
    assert len(rename(it, text.index("a)"), "b")) == 3
    assert len(rename(it, text.index("j ≤"), "l")) == 3
    with pytest.raises(Refused):
        rename(it, text.index("j ≤"), "k")
    two = "modifier half on x { x = x / 2 }\nmixer m extends qkv {\n  y = q\n  use half on q\n}\n"
    it, _ = open_text(two)
    assert applied(two, rename(it, two.index("half"), "halved")) == two.replace("half", "halved")


def test_a_text_that_is_open_stands_for_its_file(folder: Path) -> None:
    top = opened(folder / "top.dsf")
    unsaved = document(
        Source(str(folder / "base.dsf"), BASE.replace("  y", "  z = g\n  y")),
        Library(folder=folder),
    )
    edits = rename(top, TOP.index("g ="), "gate", [unsaved.spec])
    assert sum(e.span.source.name.endswith("base.dsf") for e in edits) == 3
