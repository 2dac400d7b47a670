"""The tables of the README files are made from the committed results."""

from __future__ import annotations

import pytest

from benchmarks import record, tables
from benchmarks.record import Document


@pytest.fixture
def document() -> Document:
    read = record.read(tables.RESULTS)
    assert read is not None
    return read


@pytest.mark.parametrize("file", tables.FILES, ids=str)
def test_a_readme_says_what_was_measured(file, document: Document) -> None:
    text = file.read_text(encoding="utf-8")
    assert "<!-- figures: " in text
    assert tables.filled(text, document) == text, "run `python -m benchmarks.tables`"


def test_a_table_has_a_line_for_each_contender_and_bar(document: Document) -> None:
    rows = [row for row in document["rows"] if "skipped" not in row]
    assert len([*tables.times(document)]) == 2 + sum(len(row["seconds"]) for row in rows)
    assert len([*tables.bars(document)]) == 2 + sum(len(row.get("verdicts", [])) for row in rows)


def test_only_what_stands_between_the_marks_is_replaced(document: Document) -> None:
    text = "a\n<!-- figures: bars -->\nold\n<!-- end of figures -->\nb\n"
    filled = tables.filled(text, document)
    assert filled.startswith("a\n<!-- figures: bars -->\n| row | bar |") and filled.endswith("b\n")
    assert "old" not in filled
