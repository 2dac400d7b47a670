from __future__ import annotations

import pytest

from dsfc.language_server.positions import Units, offset, position
from dsfc.source import Source

SOURCE = Source("<text>", "aη\u2028\x0c b\r\n𝑥y\nz")


@pytest.mark.parametrize("units", Units)
def test_an_offset_is_found_again(units: Units) -> None:
    for at, char in enumerate(SOURCE.text):
        line, column = position(SOURCE, at, units)
        assert char == "\n" or offset(SOURCE, line, column, units) == at


@pytest.mark.parametrize("units, column", [(Units.UTF8, 4), (Units.UTF16, 2), (Units.UTF32, 1)])
def test_columns_are_counted_in_units_and_lines_end_at_newlines(units: Units, column: int) -> None:
    assert position(SOURCE, SOURCE.text.index("y"), units) == (1, column)
    assert position(SOURCE, SOURCE.text.index("z"), units) == (2, 0)


def test_what_lies_outside_is_moved_to_the_edge() -> None:
    assert offset(SOURCE, 9, 9) == len(SOURCE.text)
    assert offset(SOURCE, 1, 99) == SOURCE.text.index("\nz")
    assert offset(SOURCE, 0, 99) == SOURCE.text.index("\r")
