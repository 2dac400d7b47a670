"""Positions in texts."""

from dsfc.source import NOWHERE, Source, Span


def test_positions_count_from_one_and_in_code_points():
    source = Source("a.dsf", "η = 1\nyy = 2\n")
    assert source.position(0) == (1, 1)
    assert source.position(6) == (2, 1)
    assert source.position(len(source.text)) == (3, 1)
    assert source.byte_offset(6) == 7


def test_lines_come_without_their_endings():
    source = Source("a.dsf", "a\r\nb\n\nc")
    assert [source.line(number) for number in (1, 2, 3, 4)] == ["a", "b", "", "c"]


def test_a_span_knows_its_place_and_text():
    source = Source("a.dsf", "a\nbcd")
    span = Span(source, 2, 4)
    assert (str(span), span.text) == ("a.dsf:2:1", "bc")
    assert span.to(Span(source, 4, 5)).text == "bcd"


def test_nowhere_is_a_place():
    assert str(NOWHERE) == "<none>:1:1"
