"""What the measurement of keystrokes types, and into what."""

from __future__ import annotations

import json

from benchmarks import editor
from dsfc.language_server.workspace import Workspace


def test_a_line_is_typed_into_a_long_text_without_mistakes_and_taken_away_again() -> None:
    text = editor.text_of_lines()
    assert text.count("\n") >= editor.LINES
    typed = list(editor.keystrokes(text))
    assert [column for _, _, column in typed].index(len(editor.TYPED)) == len(editor.TYPED) - 1
    workspace = Workspace()
    whole = workspace.change("<text>", max((it for it, _, _ in typed), key=len))
    assert whole.parsed and not whole.diagnostics and len(whole.typed) > 10
    last, line, _ = typed[-1]
    assert last.split("\n")[line] == "" and len(last) == len(text) + 1


def test_the_results_say_what_was_measured() -> None:
    found = json.loads(editor.FILE.read_text(encoding="utf-8"))
    assert found["lines"] >= editor.LINES
    assert found["keystrokes"] == editor.ROUNDS * 2 * len(editor.TYPED)
