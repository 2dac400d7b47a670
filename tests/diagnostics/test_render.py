"""Diagnostics as text for people and JSON for programs."""

import json

from dsfc.diagnostics.catalogue import ClaimNote, FileProblem, ShapeAdd, SyntaxProblem
from dsfc.diagnostics.render import as_dict, render, render_all, render_short, to_json
from dsfc.diagnostics.report import DiagnosticError, Label
from dsfc.diagnostics.sarif import to_sarif
from dsfc.source import NOWHERE, Source

SOURCE = Source("a.dsf", "mixer m {\n\tη = 日本 + q  # x\n}\n")
ADD = ShapeAdd(
    SOURCE.span(15, 21),
    left="{n}",
    right="{p}",
    repair="broadcast with `⊗ ones[…]`",
    labels=(Label(SOURCE.span(11, 12), "this one"),),
    found="q",
    hint="think",
)


def test_text_names_place_and_repair_and_underlines():
    assert render(ADD).splitlines() == [
        "error[E-SHAPE-ADD]: cannot add axes {n} and {p}; broadcast with `⊗ ones[…]`",
        "  --> a.dsf:2:6",
        "  |",
        "2 |     η = 日本 + q  # x",
        "  |         ^^^^^^^^",
        "  --> a.dsf:2:2",
        "  |",
        "2 |     η = 日本 + q  # x",
        "  |     - this one",
        "  = found: q",
        "  = help: think",
    ]


def test_colours_only_if_asked():
    assert "\x1b" not in render(ADD)
    assert render(ADD, colour=True).startswith("\x1b[1m\x1b[31merror[E-SHAPE-ADD]")


def test_several_are_counted_and_notes_are_no_errors():
    note = ClaimNote(SOURCE.span(0, 5), claim="stable", obstacle="why")
    assert render_all([ADD, note, ADD]).endswith("2 errors")
    assert render_all([note]).startswith("note[N-CLAIM]")
    assert "error" not in render_all([note])


def test_a_spec_cannot_steer_the_terminal():
    source = Source("a\x1b.dsf", "x = \x1b[31m\u202e1\n")
    text = render(SyntaxProblem(source.span(4, 9), problem="\x1b[2J"))
    assert text.replace("\n", "").isprintable()


def test_long_lines_are_cut_around_the_place():
    source = Source("a.dsf", "a" * 5000 + "b" + "c" * 5000)
    lines = render(SyntaxProblem(source.span(5000, 5001), problem="here")).splitlines()
    assert max(map(len, lines)) < 130
    shown, marks = lines[3], lines[4]
    assert shown[marks.index("^")] == "b"


def test_places_at_the_end_and_without_text():
    source = Source("a.dsf", "mixer m {\n")
    assert "^" in render(SyntaxProblem(source.span(10, 10), problem="end"))
    nowhere = Source("gone.dsf", "").span()
    found = FileProblem(nowhere, path="gone.dsf", problem="no such file")
    assert render(found) == "error[E-FILE]: gone.dsf: no such file\n  --> gone.dsf"
    # A problem of no file has no line for its place.
    assert render(FileProblem(NOWHERE, path="a", problem="b", hint="c")).splitlines()[1:] == [
        "  = help: c"
    ]


def test_several_lines_are_shown_by_their_first():
    source = Source("a.dsf", "x = (a +\n b)\n")
    lines = render(SyntaxProblem(source.span(4, 12), problem="p")).splitlines()
    assert lines[-1] == "  |     ^^^^"


def test_json_has_every_counting_of_positions():
    (found,) = json.loads(to_json([ADD]))
    assert found == as_dict(ADD)
    assert found["span"]["start"] == {"line": 2, "column": 6, "byte": 16}
    assert found["span"]["end"] == {"line": 2, "column": 12, "byte": 26}
    assert found["labels"][0]["text"] == "this one"
    assert (found["expected"], found["nearest"]) == (None, None)


def test_what_has_no_place_names_none():
    nowhere = FileProblem(NOWHERE, path="a", problem="is no file")
    assert render_short(nowhere) == f"dsfc: error: {nowhere}"
    assert str(DiagnosticError((nowhere,))) == str(nowhere)
    assert render_short(ADD).startswith("a.dsf:2:6: error: E-SHAPE-ADD: ")
    assert str(DiagnosticError((ADD,))).startswith("a.dsf:2:6: E-SHAPE-ADD: ")
    assert '"locations": []' in to_sarif([nowhere])
