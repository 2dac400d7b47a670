from __future__ import annotations

from dsfc.diagnostics.catalogue import CODES, examples
from dsfc.language_server.document import document
from dsfc.language_server.edits import applied, fixes, formatted
from dsfc.mixer.library import Library
from dsfc.source import Source
from dsfc.syntax.format import format_spec


def test_the_fix_of_did_you_mean(open_text) -> None:
    text = "mixer m {\n  dims d\n  input u : d\n  gate = sigmoid(u)\n  y = gaet * u\n}\n"
    it, _ = open_text(text)
    at = text.index("gaet")
    (fix,) = fixes(it, at, at)
    assert fix.title == "Write `gate`"
    assert applied(text, [fix.edit]) == text.replace("gaet", "gate")
    assert fixes(it, 0, 3) == ()


def test_fixes_repair_the_wrong_specs_of_the_pages() -> None:
    """Each page's wrong spec, repaired with all that an editor is offered, one after the other."""
    fixed = set()
    for code in CODES:
        pages = examples(code)
        text = "" if pages is None else pages[0]
        for _ in range(text.count("\n")):
            found = fixes(document(Source("<text>", text), Library()), 0, len(text))
            if not found:
                break
            text = applied(text, [found[0].edit])
            fixed.add(code)
        left = {d.code for d in document(Source("<text>", text), Library()).diagnostics}
        assert code not in left or code not in fixed
    assert {"E-UNKNOWN-NAME", "E-BASE", "E-CHAR", "E-KEYWORD"} <= fixed


def test_what_is_only_like_a_repair_is_not_offered(open_text) -> None:
    text = "mixer m {\n  dims d\n  input u : d\n  y = √u\n}\n"
    it, _ = open_text(text)
    assert [d.nearest for d in it.diagnostics] == ["sqrt(…)"]
    assert fixes(it, 0, len(text)) == ()


def test_a_text_gets_its_canonical_form(open_text) -> None:
    it, _ = open_text("mixer m{dims d;input u:d # in\n y=u}")
    edit = formatted(it)
    assert edit is not None and edit.text == format_spec(it.spec) and "# in" in edit.text
    again, _ = open_text(edit.text)
    assert formatted(again) is None
    broken, _ = open_text("mixer m { y = }")
    assert formatted(broken) is None
