"""Diagnostics are collected, sorted by place, and travel together."""

import pytest

from dsfc.diagnostics.catalogue import ClaimNote, StateNow, UnknownName
from dsfc.diagnostics.report import DiagnosticError, Reporter, braces, nearest
from dsfc.source import Source

SOURCE = Source("a.dsf", "abc\ndef\n")
LATE = UnknownName(SOURCE.span(4, 5), name="d")
EARLY = StateNow(SOURCE.span(0, 1), state="a")
NOTE = ClaimNote(SOURCE.span(2, 3), claim="stable", obstacle="why")


def test_diagnostics_come_in_the_order_of_the_text_and_once():
    reporter = Reporter()
    reporter.add(LATE, NOTE)
    reporter.add(EARLY, LATE)
    assert tuple(reporter) == (EARLY, NOTE, LATE)
    assert reporter.errors == (EARLY, LATE)


def test_notes_alone_do_not_end_the_run():
    reporter = Reporter()
    reporter.add(NOTE)
    reporter.raise_errors()
    reporter.add(LATE)
    with pytest.raises(DiagnosticError) as caught:
        reporter.raise_errors()
    assert caught.value.diagnostics == (NOTE, LATE)
    assert str(caught.value).splitlines()[1] == "a.dsf:2:1: E-UNKNOWN-NAME: `d` is not defined"


@pytest.mark.parametrize(
    ("word", "found"),
    [("gaet", "gate"), ("Q", "q"), ("w_q", "W_Q"), ("zzz", None), ("gate", "gates")],
)
def test_the_nearest_name(word, found):
    assert nearest(word, ["gate", "gates", "q", "W_Q"]) == found


def test_axes_as_messages_print_them():
    assert braces(["h", "n"]) == "{h,n}"
    assert braces([]) == "{}"
